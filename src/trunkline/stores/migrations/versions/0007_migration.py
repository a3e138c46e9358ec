"""
How agents move from one protocol to another, how they were checked, and runs that were begun by a step of another run.

A program of the revision before leaves every new column out: its runs have no parent and are called as ever.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")

_OF_RUNS = ("parent_id", "parent_step", "depth", "routes")
_TABLES = ("agent_events", "agent_checks", "agent_sides", "comparisons")


def upgrade() -> None:
    op.add_column("runs", sa.Column("parent_id", UUID, comment="The run whose step has begun this one"))
    op.add_column("runs", sa.Column("parent_step", sa.Text()))
    op.add_column(
        "runs", sa.Column("depth", sa.Integer(), nullable=False, server_default="0", comment="0: no parent")
    )
    op.add_column(
        "runs",
        sa.Column(
            "routes",
            sa.BigInteger(),
            nullable=False,
            server_default="0",
            comment="The last agent event that was known when it was accepted: which side of an agent it calls",
        ),
    )
    has_parent = sa.text("parent_id IS NOT NULL")
    op.create_index(
        "ix_runs_parent", "runs", ["parent_id", "id"], sqlite_where=has_parent, postgresql_where=has_parent
    )
    op.create_table(
        "agent_events",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False, comment="Gap-free"),
        sa.Column("agent_id", UUID, nullable=False),
        sa.Column("agent", sa.Text(), nullable=False, comment="Its name at that time"),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False, comment="Microseconds since 1970, UTC"),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False, comment="JSON"),
    )
    op.create_index("ix_agent_events_agent", "agent_events", ["agent_id", "id"])
    op.create_index("ix_agent_events_kind", "agent_events", ["kind", "id"])
    op.create_table(
        "agent_checks",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("agent_id", UUID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("protocol", sa.String(), nullable=False),
        sa.Column("active", sa.Integer(), nullable=False, comment="1: messages were sent"),
        sa.Column("grade", sa.String(), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.Column("report", sa.LargeBinary(), nullable=False, comment="JSON"),
    )
    op.create_index("ix_agent_checks_agent", "agent_checks", ["agent_id", "id"])
    op.create_table(
        "agent_sides",
        sa.Column("agent_id", UUID, nullable=False),
        sa.Column("side", sa.String(), nullable=False, comment="old or new"),
        sa.Column("calls", sa.LargeBinary(), nullable=False, comment="How the last calls have ended, JSON"),
        sa.PrimaryKeyConstraint("agent_id", "side"),
    )
    op.create_table(
        "comparisons",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("agent_id", UUID, nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False, comment="The agent event that began the shadow"),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False, comment="JSON"),
    )
    op.create_index("ix_comparisons_agent", "comparisons", ["agent_id", "id"])


def downgrade() -> None:
    for table in _TABLES:
        op.drop_table(table)
    op.drop_index("ix_runs_parent", table_name="runs")
    for column in _OF_RUNS:
        op.drop_column("runs", column)
