"""
Subscriptions to changes, and the deliveries that report them.

Only adds: a program of the revision before reports nothing.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    op.create_table(
        "subscriptions",
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
        sa.Column("failing_since", sa.BigInteger(), comment="Every attempt since then has failed"),
        sa.Column("error", sa.Text(), comment="Of the last attempt"),
        sa.Column("disabled_at", sa.BigInteger(), comment="After it had failed for too long"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("subscription_id", UUID, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("run_id", UUID),
        sa.Column("event", sa.LargeBinary(), nullable=False, comment="A CloudEvent, as JSON"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("attempted_at", sa.BigInteger()),
        sa.Column("error", sa.Text(), comment="Of the last attempt"),
    )
    op.create_index("ix_deliveries_subscription", "deliveries", ["subscription_id", "id"])
    op.create_index("ix_deliveries_created_at", "deliveries", ["created_at"])


def downgrade() -> None:
    op.drop_table("deliveries")
    op.drop_table("subscriptions")
