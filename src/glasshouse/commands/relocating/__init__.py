"""What do `tradeoff` and `protect relocate` share? Their options, the chances as a file, files that are judged."""
