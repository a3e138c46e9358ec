"""
Who has changed what, and which processes live.

A program of the revision before writes neither: its changes are missing, and it is not listed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False, comment="Microseconds since 1970, UTC"),
        sa.Column("who", sa.Text(), comment="The name of a key; none: no keys were in use"),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.LargeBinary(), nullable=False, comment="JSON"),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    for column in ("who", "kind", "subject"):
        op.create_index(f"ix_audit_{column}", "audit", [column, "id"])
    op.create_table(
        "processes",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False, comment="Host and process id"),
        sa.Column("roles", sa.String(), nullable=False, comment="Separated by commas"),
        sa.Column("pool", sa.Text()),
        sa.Column("version", sa.String(), nullable=False, comment="Of the program"),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False, comment="It counts as alive"),
    )


def downgrade() -> None:
    op.drop_table("processes")
    op.drop_table("audit")
