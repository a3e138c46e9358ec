"""The page at which a person answers a question by link, rendered on the server."""
