"""How are records made that add up at every level, from noisy counts?"""
