"""What does an adversary learn from noisy counts? Exact posteriors, risks and decisions; plans for a budget."""
