"""API keys, named secrets, and the vault that encrypts them."""
