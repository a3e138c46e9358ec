"""
Runs that wait for the flow control of their trigger.

Only adds: a program of the revision before has no triggers with flow control.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# Compared byte by byte, whatever the database's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# SQLite makes a column the row's own number only when its type reads INTEGER.
ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "queued_starts",
        sa.Column("number", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("run_id", UUID, nullable=False, unique=True),
        sa.Column("gate", TEXT, nullable=False, comment="The trigger and the key"),
        sa.Column("state", sa.SmallInteger(), nullable=False, comment="0 waits, 1 goes on, 2 has ended"),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), comment="An executor looks at its gate"),
        sa.Column("reason", sa.Text(), comment="Why it waits"),
        sa.Column("policy", sa.LargeBinary(), nullable=False, comment="JSON"),
        # The newest row brings the policy, also if others have been deleted.
        sqlite_autoincrement=True,
    )
    op.create_index("ix_queued_starts_due", "queued_starts", ["due"])
    op.create_index("ix_queued_starts_gate", "queued_starts", ["gate", "number"])
    op.create_table(
        "start_rates",
        sa.Column("gate", TEXT, primary_key=True, nullable=False),
        sa.Column("tokens", sa.Float(53), nullable=False),
        sa.Column("refilled_at", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_start_rates_refilled_at", "start_rates", ["refilled_at"])


def downgrade() -> None:
    op.drop_table("start_rates")
    op.drop_table("queued_starts")
