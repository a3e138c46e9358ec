"""
How agents are published over A2A.

Only adds: a program of the revision before publishes no agents, and keeps the column when it changes others.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agents", sa.Column("publish", sa.Text(), comment="As JSON; null: it is not published"))
    published = sa.text("publish IS NOT NULL")
    op.create_index(
        "ix_agents_published", "agents", ["name"], sqlite_where=published, postgresql_where=published
    )


def downgrade() -> None:
    op.drop_index("ix_agents_published", table_name="agents")
    op.drop_column("agents", "publish")
