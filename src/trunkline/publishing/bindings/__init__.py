"""What the versions and bindings of A2A send and receive."""
