"""Real files in and out: CSV, CSV.gz and Parquet, long and wide, and the offices' own archives."""
