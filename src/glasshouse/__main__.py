"""`python -m glasshouse` is the command line."""

from glasshouse.run.cli import entry

if __name__ == "__main__":
    entry()
