"""The driver's side: sessions and their pool, errors and texts, the clock, the schema."""
