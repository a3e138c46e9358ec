"""Serving a zone: over HTTP as an ASGI application, or on standard input and output."""
