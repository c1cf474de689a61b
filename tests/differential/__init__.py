"""Do the commands say what equations 7 and 8 of paper 000 say? Random releases, and a model that shares no code.

`generator` draws scenarios, truths and releases; `model` reads their files itself and asks CP-SAT; `compare` runs the
commands on the same files and lists every disagreement. `python -m tests.differential --help` runs many of them.
"""
