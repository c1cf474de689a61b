"""What do tables that nobody described say of themselves? Their dimensions, totals, places and links."""
