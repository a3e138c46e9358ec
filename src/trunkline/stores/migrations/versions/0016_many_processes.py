"""
What many processes share costs each of them only its own part.

On PostgreSQL claimed tasks are found by their owner, and remote tasks by their pool. What a process has put into the
outbox it sends itself, so it is reserved for a moment. A program of the revision before goes on: it sends such messages
once more, which does no harm.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "outbox",
        sa.Column(
            "reserved_until",
            sa.BigInteger(),
            nullable=False,
            server_default=sa.text("0"),
            comment="Its writer sends it itself until then",
        ),
    )
    if op.get_context().dialect.name != "postgresql":
        # One process claims everything.
        return
    # Those that are to end are among those that are claimed. In words that the index of busy tasks does not match: that
    # one might be read instead, with all remote tasks in it.
    op.drop_index("ix_tasks_stopping", table_name="tasks")
    op.create_index(
        "ix_tasks_claimed", "tasks", ["owner"], postgresql_where=sa.text("(status = 'claimed') IS TRUE")
    )
    op.drop_index("ix_tasks_remote", table_name="tasks")
    op.create_index(
        "ix_tasks_remote",
        "tasks",
        [sa.text("coalesce(pool, '')"), "poll_at"],
        postgresql_where=sa.text("(status = 'remote') IS TRUE"),
    )


def downgrade() -> None:
    op.drop_column("outbox", "reserved_until")
    if op.get_context().dialect.name != "postgresql":
        return
    op.drop_index("ix_tasks_remote", table_name="tasks")
    op.create_index("ix_tasks_remote", "tasks", ["poll_at"], postgresql_where=sa.text("status = 'remote'"))
    op.drop_index("ix_tasks_claimed", table_name="tasks")
    op.create_index(
        "ix_tasks_stopping",
        "tasks",
        ["owner"],
        postgresql_where=sa.text("stopping = 1 AND status = 'claimed'"),
    )
