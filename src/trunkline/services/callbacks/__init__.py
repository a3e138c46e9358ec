"""Callbacks: durable requests to other systems."""
