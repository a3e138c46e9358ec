"""
Jobs, which operate on many runs.

Only adds.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False, comment="JSON"),
        sa.Column("progress", sa.LargeBinary(), nullable=False, comment="JSON"),
        sa.Column("created_by", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="Microseconds since 1970, UTC"),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column(
            "due", sa.BigInteger(), comment="A process can claim it from then on; unfinished jobs only"
        ),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_jobs_due", "jobs", ["due", "id"])
    op.create_index("ix_jobs_finished_at", "jobs", ["finished_at"])


def downgrade() -> None:
    op.drop_table("jobs")
