"""Is it certain? Bounds in rational arithmetic, cuts in integers, cases, and, at last, whether two engines agree."""
