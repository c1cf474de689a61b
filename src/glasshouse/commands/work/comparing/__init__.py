"""What `glasshouse compare` does to files other than those of persons."""
