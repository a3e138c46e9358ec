"""Each agent has its protocol; those that were registered before speak Simple A2A."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "agents",
        sa.Column(
            "protocol",
            sa.String(),
            nullable=False,
            server_default="simple-a2a",
            comment="Protocol type: simple-a2a or jsonrpc-2.0",
        ),
    )
    op.add_column(
        "agents",
        sa.Column(
            "protocol_config",
            # SQLite gives a column of type JSON numeric affinity; as TEXT it keeps what is written.
            sa.Text().with_variant(postgresql.JSONB(), "postgresql"),
            nullable=True,
            comment="Protocol-specific configuration",
        ),
    )
    op.create_index("ix_agents_protocol", "agents", ["protocol"])


def downgrade() -> None:
    op.drop_index("ix_agents_protocol", table_name="agents")
    op.drop_column("agents", "protocol_config")
    op.drop_column("agents", "protocol")
