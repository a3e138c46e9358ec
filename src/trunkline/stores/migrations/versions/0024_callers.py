"""
API keys of callers: which publications each may call.

Only adds: a program of the revision before refuses keys with the role caller.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    comment = "Of a caller, as a JSON list: workflows/NAME, agents/NAME"
    op.add_column("api_keys", sa.Column("publications", sa.Text(), comment=comment))


def downgrade() -> None:
    op.drop_column("api_keys", "publications")
