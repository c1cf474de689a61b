"""Which tables does an office publish? Scenarios are data; here they are loaded and checked."""
