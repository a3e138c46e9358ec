"""
Callbacks: requests to other systems that are stored until they are accepted, in queues that keep their order.

Only adds: a program of the revision before sends none.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# SQLite makes a column the row's own number only when its type reads INTEGER.
ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "callback_queues",
        sa.Column("queue", sa.Text(), primary_key=True, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="Who makes the requests"),
        sa.Column("failures", sa.Integer(), nullable=False, server_default=sa.text("0"), comment="In a row"),
        sa.Column(
            "next_attempt_at",
            sa.BigInteger(),
            nullable=False,
            comment="While it is claimed, the end of the claim",
        ),
        sa.Column("claim", sa.Text(), comment="Of the process that sends from it"),
    )
    op.create_index("ix_callback_queues_due", "callback_queues", ["next_attempt_at"])
    op.create_table(
        "callbacks",
        sa.Column("id", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        # The order of the numbers is the order of the queue.
        sqlite_autoincrement=True,
    )
    op.create_index("ix_callbacks_queue", "callbacks", ["queue", "id"])


def downgrade() -> None:
    op.drop_index("ix_callbacks_queue", table_name="callbacks")
    op.drop_table("callbacks")
    op.drop_index("ix_callback_queues_due", table_name="callback_queues")
    op.drop_table("callback_queues")
