"""The command that swaps households: protect swap."""
