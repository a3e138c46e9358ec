"""
The core: agents, workflows, runs and what carries them.

Times are microseconds since the epoch. Payloads are bytes, never jsonb, which refuses some texts. Flags are
small integers, so that one condition (`applied = 0`) reads alike on every database.

A run's tasks are found by `task_id`, which begins with the run's id: one index less to write for each task.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# SQLite makes a column the row's own number only when its type reads INTEGER.
ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_agents()
    _create_workflows()
    _create_runs()
    _create_steps()
    _create_events()
    _create_inbox()
    _create_timers()
    _create_tasks()
    _create_exchanges()


def downgrade() -> None:
    for table in ("exchanges", "tasks", "timers", "inbox", "events", "steps", "runs"):
        op.drop_table(table)
    for table in ("workflow_versions", "workflows", "agents"):
        op.drop_table(table)


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("description", sa.String()),
        sa.Column("auth_type", sa.String(), nullable=False, server_default="none"),
        sa.Column("secret", sa.LargeBinary(), comment="The auth_config, encrypted"),
        sa.Column("timeout_ms", sa.Integer(), nullable=False, server_default=sa.text("30000")),
        sa.Column("retry", sa.Text()),
        sa.Column("max_concurrency", sa.Integer(), nullable=False, server_default=sa.text("100")),
        sa.Column("pool", sa.String()),
        sa.Column("dialect", sa.Text(), comment="What the agent speaks in fact, with the evidence"),
        sa.Column("version", sa.Integer(), nullable=False, server_default=sa.text("1")),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_agents_name", "agents", ["name"], unique=True)


def _create_workflows() -> None:
    op.create_table(
        "workflows",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("name", sa.String(), nullable=False, unique=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "workflow_versions",
        sa.Column("workflow_id", UUID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("canonical", sa.LargeBinary(), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", "version"),
    )


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("workflow_id", UUID, nullable=False),
        sa.Column("workflow_name", sa.String(), nullable=False),
        sa.Column("workflow_version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("seq", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("input", sa.LargeBinary(), nullable=False),
        sa.Column("output", sa.LargeBinary()),
        sa.Column("error", sa.LargeBinary()),
        sa.Column("correlation_id", sa.String(), nullable=False),
        sa.Column("idempotency_key", sa.String()),
        sa.Column("request_digest", sa.LargeBinary()),
        sa.Column("retry_of", UUID),
        sa.Column("paused", sa.SmallInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("contexts", sa.LargeBinary()),
        sa.Column("cancel_requested_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.UniqueConstraint("workflow_id", "idempotency_key"),
    )
    op.create_index("ix_runs_status", "runs", ["status", "id"])
    op.create_index("ix_runs_workflow_name", "runs", ["workflow_name", "id"])
    op.create_index("ix_runs_finished_at", "runs", ["finished_at"])


def _create_steps() -> None:
    op.create_table(
        "steps",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("answered_failures", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("replies", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("protocol", sa.String()),
        sa.Column("context_id", sa.String()),
        sa.Column("remote_task_id", sa.String()),
        sa.Column("reply", sa.LargeBinary()),
        sa.Column("input", sa.LargeBinary()),
        sa.Column("output", sa.LargeBinary()),
        sa.Column("error", sa.LargeBinary()),
        sa.Column("warnings", sa.LargeBinary()),
        sa.Column("waiting_for", sa.LargeBinary()),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("run_id", "name"),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.UniqueConstraint("run_id", "seq"),
    )


def _create_inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("id", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("applied", sa.SmallInteger(), nullable=False, server_default=sa.text("0")),
        sa.UniqueConstraint("run_id", "key"),
    )
    _create_partial_index("ix_inbox_unapplied", "inbox", ["id"], where="applied = 0")


def _create_timers() -> None:
    op.create_table(
        "timers",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key"),
    )
    op.create_index("ix_timers_due", "timers", ["due"])


def _create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("task_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False, comment="queued, claimed, remote or done"),
        sa.Column("owner", sa.String()),
        sa.Column("epoch", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("stopping", sa.SmallInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("at_most_once", sa.SmallInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("deadline", sa.BigInteger()),
        sa.Column("poll_at", sa.BigInteger()),
        sa.Column("polls", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("remote_task_id", sa.String()),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("result", sa.LargeBinary()),
        sa.UniqueConstraint("task_id", "attempt"),
    )
    _create_partial_index("ix_tasks_queued", "tasks", ["agent", "id"], where="status = 'queued'")
    _create_partial_index("ix_tasks_remote", "tasks", ["poll_at"], where="status = 'remote'")
    _create_partial_index("ix_tasks_busy", "tasks", ["agent"], where="status IN ('claimed', 'remote')")


def _create_exchanges() -> None:
    op.create_table(
        "exchanges",
        sa.Column("id", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("step", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
    )
    op.create_index("ix_exchanges_run_id", "exchanges", ["run_id", "id"])


def _create_partial_index(name: str, table: str, columns: list[str], *, where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
