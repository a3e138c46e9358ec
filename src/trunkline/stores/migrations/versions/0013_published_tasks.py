"""
Runs that A2A callers started: the message of each, how callers list them, and the messages that followed.

Only adds: a program of the revision before does not start such runs. Of one that it decides, the state in its caller's
list is that of the last decision of a newer program.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")

_INDEXES = ("ix_published_tasks_context", "ix_published_tasks_state", "ix_published_tasks_caller")


def upgrade() -> None:
    op.add_column("runs", sa.Column("message", sa.LargeBinary(), comment="The A2A message that started it"))
    op.create_table(
        "published_tasks",
        sa.Column("run_id", UUID, primary_key=True, nullable=False),
        sa.Column("publication", sa.Text(), nullable=False, comment="workflows/NAME or agents/NAME"),
        sa.Column("caller", sa.Text(), nullable=False, comment="The id of an API key; empty without keys"),
        sa.Column("context_id", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False, comment="As A2A names it"),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
    )
    op.create_index(
        "ix_published_tasks_caller", "published_tasks", ["publication", "caller", "updated_at", "run_id"]
    )
    op.create_index(
        "ix_published_tasks_state",
        "published_tasks",
        ["publication", "caller", "state", "updated_at", "run_id"],
    )
    op.create_index(
        "ix_published_tasks_context", "published_tasks", ["context_id", "publication", "updated_at", "run_id"]
    )
    op.create_table(
        "follow_ups",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("key", sa.Text(), nullable=False, comment="That of the input in the run's input queue"),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("question", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key"),
    )


def downgrade() -> None:
    op.drop_table("follow_ups")
    for index in _INDEXES:
        op.drop_index(index, table_name="published_tasks")
    op.drop_table("published_tasks")
    op.drop_column("runs", "message")
