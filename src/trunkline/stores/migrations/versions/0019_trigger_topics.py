"""
What triggers listen to, and the events and ends of runs that they still have to take.

Only adds: a program of the revision before stores no pending firings.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# Compared byte by byte, whatever the database's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# SQLite makes a column the row's own number only when its type reads INTEGER.
ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "trigger_topics",
        sa.Column("topic", TEXT, nullable=False, comment="event/TYPE or run/STATUS/WORKFLOW"),
        sa.Column("trigger_id", UUID, nullable=False),
        sa.PrimaryKeyConstraint("topic", "trigger_id"),
    )
    op.create_index("ix_trigger_topics_trigger", "trigger_topics", ["trigger_id"])
    op.create_table(
        "trigger_occasions",
        sa.Column("number", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("trigger_id", UUID, nullable=False),
        sa.Column("event_number", sa.BigInteger(), comment="Of the event that has arrived"),
        sa.Column("run_id", UUID, comment="Of the run that has ended"),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_trigger_occasions_trigger", "trigger_occasions", ["trigger_id"])
    op.create_index("ix_trigger_occasions_event", "trigger_occasions", ["event_number"])
    op.create_index("ix_trigger_occasions_run", "trigger_occasions", ["run_id"])


def downgrade() -> None:
    op.drop_table("trigger_occasions")
    op.drop_table("trigger_topics")
