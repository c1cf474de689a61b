"""Say it: tables, charts, reports."""
