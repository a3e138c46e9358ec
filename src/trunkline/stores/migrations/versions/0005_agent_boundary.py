"""What an agent may ask of us, what its bridges know of it together, and whose trace a run belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Programs of the revision before leave all of these out.
    op.add_column(
        "agents", sa.Column("options", sa.Text(), comment="Resend, endpoint, rate and breaker, as JSON")
    )
    op.add_column(
        "runs", sa.Column("traceparent", sa.String(), comment="W3C trace context of who asked for it")
    )
    op.add_column("runs", sa.Column("tracestate", sa.String(), comment="What belongs to traceparent"))
    op.add_column("tasks", sa.Column("context_id", sa.Text(), comment="The agent's conversation"))
    op.create_table(
        "agent_states",
        sa.Column("agent", sa.Text(), primary_key=True, comment="By name, as tasks have it"),
        sa.Column("breaker", sa.String(), nullable=False, server_default="closed"),
        sa.Column("failures", sa.Integer(), nullable=False, server_default="0", comment="In a row"),
        sa.Column(
            "recent", sa.String(), nullable=False, server_default="", comment="The last calls, 1: failed"
        ),
        sa.Column("probing", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("opened_at", sa.BigInteger()),
        sa.Column("retry_at", sa.BigInteger()),
        sa.Column("reason", sa.Text(), comment="Why it is open"),
        sa.Column("tokens", sa.Float(), comment="Calls that may begin at once"),
        sa.Column("refilled_at", sa.BigInteger()),
    )


def downgrade() -> None:
    op.drop_table("agent_states")
    op.drop_column("tasks", "context_id")
    op.drop_column("runs", "tracestate")
    op.drop_column("runs", "traceparent")
    op.drop_column("agents", "options")
