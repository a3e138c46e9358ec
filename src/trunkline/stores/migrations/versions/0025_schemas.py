"""
Saved JSON Schemas.

Only adds.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schemas",
        # Names are ASCII, in the order of their bytes in every database.
        sa.Column(
            "name",
            sa.String().with_variant(sa.String(collation="C"), "postgresql"),
            primary_key=True,
        ),
        sa.Column("schema", sa.LargeBinary(), nullable=False, comment="As JSON"),
        sa.Column("version", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="Microseconds since 1970, UTC"),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("schemas")
