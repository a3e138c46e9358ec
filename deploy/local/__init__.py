"""
A real Kafka and a real PostgreSQL on this machine, without Docker.

For tests, benchmarks and `make up-distributed`; nothing here is part of the program.
"""
