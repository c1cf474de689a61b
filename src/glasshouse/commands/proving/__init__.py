"""How does `glasshouse prove` work? What is shown of a unit, of its counts, and the files that are written."""
