"""
The same job by other systems that keep workflows durable, in turn with ours on the same PostgreSQL.

Each is asked in the way that it recommends, with its own defaults.
"""
