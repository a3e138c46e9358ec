"""Rows of tables as records and back: what is the same in every backend."""
