"""How do published tables become integer programs? Cells, rows over them, and what is live at a place."""
