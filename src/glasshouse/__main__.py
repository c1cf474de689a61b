"""`python -m glasshouse` is the command line."""

from glasshouse.cli.main import entry

if __name__ == "__main__":
    entry()
