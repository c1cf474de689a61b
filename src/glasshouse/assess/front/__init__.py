"""What is said of a front of relocations besides its points: which point is meant, and how files stand beside it."""
