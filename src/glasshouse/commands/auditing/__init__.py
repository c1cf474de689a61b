"""What an audit is made of: its configuration, its steps, what they found, and the files it writes."""
