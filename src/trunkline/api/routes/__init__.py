"""The operations of the REST interface, a module per group of resources."""
