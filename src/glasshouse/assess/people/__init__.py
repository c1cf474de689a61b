"""Who is behind a record, and what would be known of them anyway? One unit at a time."""
