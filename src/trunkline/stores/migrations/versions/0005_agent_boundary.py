"""What an agent may ask of us, what its bridges know of it together, and whose trace a run belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_WAITING_INDEXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ix_steps_waiting", ()),
    ("ix_steps_waiting_kind", ("waiting_kind",)),
    ("ix_steps_waiting_workflow", ("waiting_workflow",)),
    ("ix_steps_waiting_workflow_kind", ("waiting_workflow", "waiting_kind")),
)


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
    _add_waiting()
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


def _add_waiting() -> None:
    """What people are waited for is listed as cheaply with a hundred thousand runs as with one."""
    op.add_column("steps", sa.Column("waiting_kind", sa.String(), comment="input, auth or outcome"))
    op.add_column("steps", sa.Column("waiting_since", sa.BigInteger(), comment="None: for no person"))
    op.add_column("steps", sa.Column("waiting_workflow", sa.String(), comment="The run's, by name"))
    text = (
        "convert_from(steps.waiting_for, 'UTF8')"
        if op.get_context().dialect.name == "postgresql"
        else "CAST(steps.waiting_for AS TEXT)"
    )
    # By how it begins: PostgreSQL's JSON refuses some texts.
    kind = (
        "CASE WHEN steps.status = 'OUTCOME_UNKNOWN' THEN 'outcome'"
        f""" WHEN substr({text}, 1, 15) = '{{"kind":"input"' THEN 'input'"""
        f""" WHEN substr({text}, 1, 14) = '{{"kind":"auth"' THEN 'auth' END"""
    )
    op.execute(
        f"UPDATE steps SET waiting_kind = {kind}, waiting_workflow = runs.workflow_name,"  # noqa: S608 - as above
        " waiting_since = coalesce(steps.started_at, runs.created_at)"
        " FROM runs WHERE runs.id = steps.run_id AND steps.waiting_for IS NOT NULL"
        f" AND steps.status IN ('WAITING', 'OUTCOME_UNKNOWN') AND {kind} IS NOT NULL"
    )
    waits = sa.text("waiting_since IS NOT NULL")
    for name, first in _WAITING_INDEXES:
        op.create_index(
            name,
            "steps",
            [*first, "waiting_since", "run_id", "name"],
            sqlite_where=waits,
            postgresql_where=waits,
        )


def downgrade() -> None:
    op.drop_table("agent_states")
    for index, _ in _WAITING_INDEXES:
        op.drop_index(index, table_name="steps")
    for column in ("waiting_kind", "waiting_since", "waiting_workflow"):
        op.drop_column("steps", column)
    op.drop_column("tasks", "context_id")
    op.drop_column("runs", "tracestate")
    op.drop_column("runs", "traceparent")
    op.drop_column("agents", "options")
