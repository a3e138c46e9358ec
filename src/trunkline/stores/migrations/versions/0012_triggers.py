"""
Triggers, their firings, and which trigger started a run.

Only adds: a program of the revision before fires no triggers.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
_QUEUED = sa.text("outcome = 'queued'")
_UNFINISHED = sa.text("trigger_name IS NOT NULL AND finished_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "triggers",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        # Names are ASCII, in the order of their bytes in every database.
        sa.Column(
            "name",
            sa.String().with_variant(sa.String(collation="C"), "postgresql"),
            unique=True,
            nullable=False,
        ),
        sa.Column("definition", sa.LargeBinary(), nullable=False, comment="JSON"),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="Microseconds since 1970, UTC"),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("scheduled_at", sa.BigInteger(), comment="Of the firing that comes next"),
        sa.Column("due", sa.BigInteger(), comment="An executor looks at it"),
        sa.Column("awaits_runs", sa.SmallInteger(), nullable=False, comment="1: until its runs end"),
    )
    op.create_index("ix_triggers_due", "triggers", ["due"])
    op.create_table(
        "firings",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("trigger_id", UUID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("scheduled_at", sa.BigInteger()),
        sa.Column("run_id", UUID),
        sa.Column("reason", sa.Text()),
    )
    op.create_index("ix_firings_trigger", "firings", ["trigger_id", "id"])
    op.create_index("ix_firings_at", "firings", ["at"])
    op.create_index(
        "ix_firings_queued", "firings", ["trigger_id", "id"], sqlite_where=_QUEUED, postgresql_where=_QUEUED
    )
    op.add_column("runs", sa.Column("trigger_name", sa.Text(), comment="Of the trigger that started it"))
    op.create_index(
        "ix_runs_unfinished_of_trigger",
        "runs",
        ["trigger_name", "id"],
        sqlite_where=_UNFINISHED,
        postgresql_where=_UNFINISHED,
    )


def downgrade() -> None:
    op.drop_index("ix_runs_unfinished_of_trigger", "runs")
    op.drop_column("runs", "trigger_name")
    op.drop_table("firings")
    op.drop_table("triggers")
