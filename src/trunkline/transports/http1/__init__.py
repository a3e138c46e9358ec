"""The HTTP/1.1 client of `https.py`: connections, their pool, and how they are opened."""
