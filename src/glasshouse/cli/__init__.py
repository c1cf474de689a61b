"""The terminal: what users type, what they see, and how it ends."""
