"""The SQL of each group of the port, with the class that keeps its promises."""
