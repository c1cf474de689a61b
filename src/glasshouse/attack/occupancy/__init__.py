"""What do two agencies' numbers say together about the same households?"""
