"""
How the work of a run is undone.

Only adds: a program of the revision before leaves it as it is, and does not know the status `COMPENSATING`.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "runs", sa.Column("compensation", sa.LargeBinary(), comment="As JSON; null: nothing was undone")
    )


def downgrade() -> None:
    op.drop_column("runs", "compensation")
