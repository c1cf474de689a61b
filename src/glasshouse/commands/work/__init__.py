"""What is done to one unit of each command? Rows of its files."""
