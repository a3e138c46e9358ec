"""The driver's side: connections, statements, the thread that commits, the schema."""
