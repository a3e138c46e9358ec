"""
When an API key expires, and when it was last used.

Only adds: a program of the revision before knows neither, so it accepts a key that has expired.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("expires_at", sa.BigInteger(), comment="None: never"))
    op.add_column("api_keys", sa.Column("last_used_at", sa.BigInteger(), comment="To the minute"))


def downgrade() -> None:
    op.drop_column("api_keys", "last_used_at")
    op.drop_column("api_keys", "expires_at")
