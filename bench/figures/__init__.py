"""What is measured: a module per group of figures, each returning rows of the table."""
