"""Push notifications: what callers ask for, and what is sent to the receivers that they name."""
