"""What must be true of records that cannot be rebuilt? Claims, why they hold, and which table gives them away."""
