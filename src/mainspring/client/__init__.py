"""What submits, cancels and asks."""
