"""
What many processes need: leases, an outbox, tasks that are sent again, dead letters, keys.

Only adds: processes of the previous revision keep working next to those of this one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# SQLite makes a column the row's own number only when its type reads INTEGER.
ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# By bytes, as SQLite does: a run's tasks are found by how their ids begin, and names sort alike everywhere.
BY_BYTES = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_SORTED_BY_BYTES = (("agents", "name"), ("workflows", "name"), ("tasks", "task_id"))

_FILLED = (("runs", 70), ("steps", 70), ("tasks", 70))

_TABLES = ("moves", "api_keys", "dead_letters", "dispatches", "outbox", "leases")


def upgrade() -> None:
    op.add_column("tasks", sa.Column("pool", sa.String(), comment="Of bridges; none: those of no pool"))
    if op.get_context().dialect.name == "postgresql":
        _upgrade_postgresql()
    _create_leases()
    _create_outbox()
    _create_dispatches()
    _create_dead_letters()
    _create_api_keys()
    op.create_table("moves", sa.Column("at", sa.BigInteger(), nullable=False))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_table(table)
    if op.get_context().dialect.name == "postgresql":
        _downgrade_postgresql()
    op.drop_column("tasks", "pool")


def _upgrade_postgresql() -> None:
    for table, column in _SORTED_BY_BYTES:
        op.alter_column(table, column, type_=sa.String(collation="C"))
    # SQLite's rows have a number of their own.
    op.add_column(
        "steps",
        sa.Column(
            "place", sa.BigInteger(), sa.Identity(), nullable=False, comment="Counts up as steps begin"
        ),
    )
    # A bridge looks at the queues of its own pools alone.
    op.drop_index("ix_tasks_queued", table_name="tasks")
    op.create_index(
        "ix_tasks_queued",
        "tasks",
        [sa.text("coalesce(pool, '')"), "agent", "id"],
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.create_index(
        "ix_tasks_stopping",
        "tasks",
        ["owner"],
        postgresql_where=sa.text("stopping = 1 AND status = 'claimed'"),
    )
    # Room on each page, so that the new version of a row whose keys are unchanged fits on the same page.
    for table, percent in _FILLED:
        op.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")


def _downgrade_postgresql() -> None:
    for table, _ in _FILLED:
        op.execute(f"ALTER TABLE {table} RESET (fillfactor)")
    op.drop_index("ix_tasks_stopping", table_name="tasks")
    op.drop_index("ix_tasks_queued", table_name="tasks")
    op.create_index(
        "ix_tasks_queued", "tasks", ["agent", "id"], postgresql_where=sa.text("status = 'queued'")
    )
    op.drop_column("steps", "place")
    for table, column in _SORTED_BY_BYTES:
        op.alter_column(table, column, type_=sa.String(collation="default"))


def _create_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("owner", sa.String(), primary_key=True, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
    )


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", ROW, sa.Identity(), primary_key=True, nullable=False),
        sa.Column("messages", sa.LargeBinary(), nullable=False, comment="All of one transaction"),
    )


def _create_dispatches() -> None:
    op.create_table(
        "dispatches",
        sa.Column("task_id", BY_BYTES, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("pause", sa.BigInteger(), nullable=False, comment="Microseconds until the next sending"),
        sa.Column("resend_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("task_id", "attempt"),
    )
    op.create_index("ix_dispatches_resend_at", "dispatches", ["resend_at"])


def _create_dead_letters() -> None:
    op.create_table(
        "dead_letters",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column(
            "origin", sa.String(), nullable=False, unique=True, comment="The same record, the same text"
        ),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.LargeBinary()),
        sa.Column("value", sa.LargeBinary()),
        sa.Column("headers", sa.LargeBinary(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )


def _create_api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", UUID, primary_key=True, nullable=False),
        sa.Column("name", BY_BYTES, nullable=False),
        sa.Column("role", sa.String(), nullable=False, comment="viewer, operator or admin"),
        sa.Column("digest", sa.LargeBinary(), nullable=False, unique=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger()),
    )
    in_use = sa.text("revoked_at IS NULL")
    op.create_index(
        "ix_api_keys_name_in_use",
        "api_keys",
        ["name"],
        unique=True,
        sqlite_where=in_use,
        postgresql_where=in_use,
    )
