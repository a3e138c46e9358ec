"""What starts runs by itself."""
