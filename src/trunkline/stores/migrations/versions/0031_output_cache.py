"""
Outputs that steps share, and which steps wait for one.

A program of the revision before neither reads nor writes them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# Compared byte by byte, whatever the database's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "kept_outputs",
        sa.Column("digest", TEXT, nullable=False, comment="Of the key, in its scope"),
        sa.Column("output", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("step", TEXT, nullable=False),
        sa.Column("workflow", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False, comment="Empty: a workflow or a block"),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_kept_outputs_expires_at", "kept_outputs", ["expires_at", "size_bytes"])
    op.create_index("ix_kept_outputs_run_id", "kept_outputs", ["run_id"])
    op.create_table(
        "output_claims",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("step", TEXT, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("waits", sa.Integer(), nullable=False, comment="0: its step does the work"),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "step"),
    )
    op.create_index(
        "ix_output_claims_digest", "output_claims", ["digest", "waits", "since", "run_id", "step"]
    )


def downgrade() -> None:
    op.drop_table("output_claims")
    op.drop_table("kept_outputs")
