"""
What a step remembers of its calls besides its other columns, such as how often an agent has corrected its output.

Only adds: a program of the revision before leaves it as it is.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("steps", sa.Column("call_details", sa.LargeBinary(), comment="As JSON; null: nothing"))


def downgrade() -> None:
    op.drop_column("steps", "call_details")
