"""
Who started a run.

Only adds: runs that a program of the revision before starts have no name.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("started_by", sa.Text(), comment="An API key's name, or kafka:TOPIC"))


def downgrade() -> None:
    op.drop_column("runs", "started_by")
