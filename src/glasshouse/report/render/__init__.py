"""How is a description shown? As a page, a workbook, lines of CSV, and drawings."""
