"""The command that protects records from the top down: protect topdown."""
