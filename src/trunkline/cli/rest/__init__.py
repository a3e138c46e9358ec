"""The REST interface as Python calls, over HTTP with the standard library alone."""
