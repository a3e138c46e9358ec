"""Stores: the durable truth, one folder per backend."""
