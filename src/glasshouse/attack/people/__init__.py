"""Who is behind a record? Records linked to named people, and what would be known of them anyway."""
