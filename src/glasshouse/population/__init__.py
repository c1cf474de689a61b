"""A synthetic county with a known truth: places, households, persons, and the files that an attack study needs."""
