"""Runs: starting, changing, reading and watching them, and the inbox of steps that wait for a person."""
