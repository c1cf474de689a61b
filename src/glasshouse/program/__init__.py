"""Which histograms fit what was published? The core: compiled once, reduced per place, answered with a proof.

cells      which kinds of record the numbers can tell apart
rows       what the numbers say about them: sums of cells, and differences of nested sums
histogram  the integer program of each place, or of places jointly with the area around
propagate  what must be so: limits that move from row to row
reduce     many programs side by side; what is left to decide falls into parts
bounds     costs with two slopes, and bounds in integers
search     depth-first, in compiled code, with or without the multipliers of a relaxation
integer    the solver boundary: a program in, a solution out; highs and cpsat are the engines
prove      what an engine claims, made certain
ladder     propagation, then search, then solvers
questions  one, best, farthest;  listing: every, top;  ranges;  conflict;  nearest;  refine;  whole
"""
