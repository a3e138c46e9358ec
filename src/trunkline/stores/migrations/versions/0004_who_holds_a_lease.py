"""A lease says whose it is, so that whoever takes over from a dead bridge can name it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A bridge of the revision before leaves it out.
    op.add_column("leases", sa.Column("process", sa.String(), comment="Host and process id"))


def downgrade() -> None:
    op.drop_column("leases", "process")
