"""
Push notification configs of callers' tasks.

Only adds: a program of the revision before sends no push notifications.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    op.create_table(
        "push_configs",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("id", sa.Text(), nullable=False, comment="Chosen by the caller"),
        sa.Column("sealed", sa.LargeBinary(), nullable=False, comment="Address and credentials, encrypted"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False, server_default=sa.text("0"), comment="In a row"),
        sa.Column("error", sa.Text(), comment="Of the last attempt"),
        sa.Column("disabled_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("run_id", "id"),
    )


def downgrade() -> None:
    op.drop_table("push_configs")
