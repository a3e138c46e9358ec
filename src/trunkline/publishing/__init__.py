"""
The A2A server: published workflows and agents, as callers of A2A 0.3 and 1.0 see them.

A task is a run, and its id is the run's. Everything is read from the store when a caller asks for it, so any replica
answers. What is known of a task has the form of 1.0 (`tasks`, `artifacts`, `updates`). `bindings` turn it into what a
version and a binding send.
"""
