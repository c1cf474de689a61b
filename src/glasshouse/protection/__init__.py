"""What could be done? Ways to protect the records, or the tables, before they are published."""
