"""
Large payloads, which are stored once.

Only adds. While processes of the revision before are alive, none are stored, because those cannot read them. So going
back is refused while there are any.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    op.create_table(
        "payloads",
        sa.Column("digest", sa.LargeBinary(), primary_key=True, nullable=False, comment="SHA-256"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "payload_uses",
        sa.Column("run_id", UUID, primary_key=True, nullable=False),
        sa.Column("digest", sa.LargeBinary(), primary_key=True, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_payload_uses_digest", "payload_uses", ["digest"])
    op.add_column(
        "processes", sa.Column("reads_pieces", sa.SmallInteger(), comment="NULL: of the revision before")
    )


def downgrade() -> None:
    op.create_table(
        "no_payloads_are_left", sa.Column("number", sa.BigInteger(), sa.CheckConstraint("number = 0"))
    )
    op.execute("INSERT INTO no_payloads_are_left SELECT count(*) FROM payload_uses")
    op.drop_table("no_payloads_are_left")
    op.drop_table("payload_uses")
    op.drop_table("payloads")
    op.drop_column("processes", "reads_pieces")
