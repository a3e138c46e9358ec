"""What callers of published workflows have."""
