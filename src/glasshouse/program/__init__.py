"""Which histograms fit what was published? The core: compiled once, reduced per place, answered with a proof.

cells      which kinds of record the numbers can tell apart
rows       what the numbers say about them: sums of cells, and differences of nested sums
histogram  the integer program of each place, or of places jointly with the area around
propagate  what must be so: limits that move from row to row
reduce     many programs side by side; what is left to decide falls into parts
bounds     costs with two slopes, and bounds in integers
search     depth-first, in compiled code, with or without the multipliers of a relaxation
integer    the solver boundary: a program in, a solution out; highs and cpsat are the engines
certainty/ what an engine claims, made certain: prove (rational arithmetic), cuts and mixing (inequalities that whole
           solutions satisfy), cases (proofs by cuts and cases), confirm (by a second engine)
straight   costs with two slopes, made linear;  few: good solutions among few of very many variables
ladder     one program, rung by rung: relaxation, shortcut, branch and bound, cuts and cases, second engine
answers    many programs: propagation, then search, then the ladder
extremes   how few and how many sets of variables count: listed, met, or asked for
questions  one, best, farthest;  least, ranges, settled: three questions to extremes;  listing: every, top
dive       solutions near known ones, by wishes
numbers/   published numbers as variables, for intervals: linked (folded and tied by equations), system (places, areas),
           walk (over records; its steps), ends (least and most of each), reasons (what gives one away), mend (nearest)
conflict   why nothing fits;  nearest: what comes nearest;  refine: finer cells;  alike: cells put together
"""
