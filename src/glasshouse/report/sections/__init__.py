"""What does each part of a report say? A section of the audit, or the pictures and tables of one command."""
