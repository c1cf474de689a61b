"""Do the commands say what equations 7 and 8 of paper 000 say? Random releases, and a model that shares no code.

`generator` draws scenarios, truths and releases; `scenario` and `model` read their files and ask CP-SAT without code of
Glasshouse; `compare` runs the commands on a `case` and lists every disagreement. `python -m tests.differential --help`.
"""
