"""
Labels of runs, and the index by which runs are found by them.

Only adds: runs that a program of the revision before starts have no labels.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# Compared byte by byte, whatever the database's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("runs", sa.Column("labels", sa.LargeBinary(), comment="As JSON; run_labels has the same"))
    op.create_table(
        "run_labels",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key"),
    )
    op.create_index("ix_run_labels", "run_labels", ["key", "value", "run_id"])


def downgrade() -> None:
    op.drop_table("run_labels")
    op.drop_column("runs", "labels")
