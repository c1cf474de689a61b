"""What does an adversary believe about one person after seeing noisy counts? Exact, in closed form (paper 001)."""
