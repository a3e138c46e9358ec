"""
Runs of blocks: the part of a workflow that a run runs, and indexes for lists of runs without them.

A program of the revision before starts runs of whole workflows only.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_HAS_PARENT = sa.text("parent_id IS NOT NULL")
_IS_CHILD = sa.text("parent_id IS NOT NULL AND block IS NULL")
_NO_BLOCK = sa.text("block IS NULL")
_OF_VERSION = ["workflow_name", "workflow_version", "status", "id"]


def upgrade() -> None:
    op.add_column("runs", sa.Column("block", sa.Text(), comment="The steps that lead to it, with slashes"))
    _create("ix_runs_child", ["status", "id"], _IS_CHILD)
    _replace(
        ("ix_runs_version_child", _OF_VERSION, _IS_CHILD),
        ("ix_runs_workflow_name", ["workflow_name", "id"], _NO_BLOCK),
        ("ix_runs_correlation", ["correlation_id", "id"], _NO_BLOCK),
    )


def _replace(*indexes: tuple[str, list[str], sa.TextClause | None]) -> None:
    if op.get_context().dialect.name != "postgresql":
        for name, columns, where in indexes:
            op.drop_index(name, table_name="runs")
            _create(name, columns, where)
        return
    # Dropping an index keeps out readers until the commit, so everything that takes long comes first.
    for name, columns, where in indexes:
        _create(f"{name}_new", columns, where)
    for name, _, _ in indexes:
        op.drop_index(name, table_name="runs")
        op.execute(f"ALTER INDEX {name}_new RENAME TO {name}")


def _create(name: str, columns: list[str], where: sa.TextClause | None) -> None:
    op.create_index(name, "runs", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_index("ix_runs_child", table_name="runs")
    _replace(
        ("ix_runs_version_child", _OF_VERSION, _HAS_PARENT),
        ("ix_runs_workflow_name", ["workflow_name", "id"], None),
        ("ix_runs_correlation", ["correlation_id", "id"], None),
    )
    op.drop_column("runs", "block")
