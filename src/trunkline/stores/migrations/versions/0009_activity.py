"""
What agents have had to do lately: how each attempt has ended, and sums for every minute.

A program of the revision before leaves it all out: its calls are not among the last ones of their agents.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_OF_TASKS = ("called_at", "ended_at", "outcome", "error_code")


def upgrade() -> None:
    op.add_column("tasks", sa.Column("called_at", sa.BigInteger(), comment="When its call began"))
    op.add_column(
        "tasks", sa.Column("ended_at", sa.BigInteger(), comment="When its agent's answer was there")
    )
    op.add_column("tasks", sa.Column("outcome", sa.String(), comment="success, error, interrupted, …"))
    op.add_column("tasks", sa.Column("error_code", sa.String()))
    has_ended = sa.text("ended_at IS NOT NULL")
    op.create_index(
        "ix_tasks_ended",
        "tasks",
        ["agent", "ended_at", "id"],
        sqlite_where=has_ended,
        postgresql_where=has_ended,
    )
    op.create_table(
        "agent_minutes",
        sa.Column("agent", sa.Text(), nullable=False, comment="By name, as tasks have it"),
        sa.Column("minute", sa.BigInteger(), nullable=False, comment="Minutes since 1970, UTC"),
        # Each bridge has rows of its own: none waits for another one's commit.
        sa.Column("bridge", sa.String(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("total_ms", sa.BigInteger(), nullable=False),
        sa.Column("longest_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("agent", "minute", "bridge"),
    )
    # What is forgotten is found by it; a minute that is only added to leaves it alone.
    op.create_index("ix_agent_minutes_minute", "agent_minutes", ["minute"])


def downgrade() -> None:
    op.drop_table("agent_minutes")
    op.drop_index("ix_tasks_ended", table_name="tasks")
    for column in _OF_TASKS:
        op.drop_column("tasks", column)
