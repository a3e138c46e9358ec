"""
A lease names its holder, so that a bridge that takes over from a dead one can report it.

And PostgreSQL sweeps the tables that are written and emptied all the time by how much is dead, not by how large they
once were: dead rows slow down the search for the next task.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


_FREQUENTLY_UPDATED = ("inbox", "outbox", "dispatches", "timers", "tasks")


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for table in _FREQUENTLY_UPDATED:
            op.execute(
                f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)"
            )
    # A bridge of the revision before leaves it out.
    op.add_column("leases", sa.Column("process", sa.String(), comment="Host and process id"))


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for table in _FREQUENTLY_UPDATED:
            op.execute(
                f"ALTER TABLE {table} RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)"
            )
    op.drop_column("leases", "process")
