"""Noise and its price: the discrete Gaussian, zero-concentrated differential privacy, budgets as data."""
