"""
Events of other systems, signals to runs, and the steps that wait for them.

Only adds: a program of the revision before receives no events, and its runs have seen none.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# SQLite makes a column the row's own number only when its type reads INTEGER.
ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column(
        "runs",
        sa.Column(
            "events_seen",
            sa.BigInteger(),
            nullable=False,
            server_default=sa.text("0"),
            comment="The last received event when the run was accepted",
        ),
    )
    op.create_table(
        "received_events",
        sa.Column("number", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False, comment="When it arrived"),
        sa.Column("run_id", UUID, comment="Of a signal"),
        sa.Column(
            "left_over", sa.BigInteger(), comment="The last wait that was looked at, while others are left"
        ),
        sa.UniqueConstraint("source", "id"),
        # A number must never come again: runs know the last one that they have seen.
        sqlite_autoincrement=True,
    )
    _partial_index("ix_received_events_type_key", ["type", "key", "number"], "run_id IS NULL")
    _partial_index("ix_received_events_type", ["type", "number"], "run_id IS NULL")
    _partial_index("ix_received_events_run", ["run_id", "type", "number"], "run_id IS NOT NULL")
    _partial_index("ix_received_events_left_over", ["number"], "left_over IS NOT NULL")
    op.create_index("ix_received_events_at", "received_events", ["at"])
    op.create_index("ix_received_events_id", "received_events", ["id"])
    op.create_table(
        "event_waits",
        sa.Column("id", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), comment="None: any key, or none"),
        sa.Column("is_signal", sa.SmallInteger(), nullable=False),
        sa.UniqueConstraint("run_id", "step", "type"),
        # A wait that begins later must come behind those that an event has been brought to.
        sqlite_autoincrement=True,
    )
    where = sa.text("is_signal = 0")
    op.create_index(
        "ix_event_waits_type_key",
        "event_waits",
        ["type", "key", "id"],
        sqlite_where=where,
        postgresql_where=where,
    )


def _partial_index(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, "received_events", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_table("event_waits")
    op.drop_table("received_events")
    op.drop_column("runs", "events_seen")
