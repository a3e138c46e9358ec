"""
Alembic's environment: it renders, for the dialect that the caller names, and connects to nothing.

Without BEGIN and COMMIT: the caller runs all statements in one transaction.
"""

from __future__ import annotations

from alembic import context

context.configure(
    dialect_name=context.config.attributes["dialect"],
    literal_binds=True,
    transactional_ddl=False,
    output_buffer=context.config.output_buffer,
)
context.run_migrations()
