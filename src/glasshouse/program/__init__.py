"""What can be true, given what was published? Integer programs, the engines that solve them, and exact proofs.

`integer` states a program and what an answer is; `highs` and `cpsat` are the engines, one callable each; `prove` turns
what an engine claims into what is certain.
"""
