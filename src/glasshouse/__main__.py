"""`python -m glasshouse` is the command line."""

from glasshouse.run.cli import entry

entry()
