"""The port of the store: a module per group, with its records and the contract of reading and writing them."""
