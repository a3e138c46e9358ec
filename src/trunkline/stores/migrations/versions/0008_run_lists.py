"""
Indexes for lists of runs: whatever is asked for, a page costs what it gives.

A run is in one of each pair of them, so a pair is written as cheaply as one index.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_NO_PARENT = sa.text("parent_id IS NULL")
_HAS_PARENT = sa.text("parent_id IS NOT NULL")
_OF_VERSION = ["workflow_name", "workflow_version", "status", "id"]
_INDEXES = ("ix_runs_version_top", "ix_runs_version_child", "ix_runs_top", "ix_runs_correlation")


def upgrade() -> None:
    _create("ix_runs_version_top", _OF_VERSION, _NO_PARENT)
    _create("ix_runs_version_child", _OF_VERSION, _HAS_PARENT)
    _create("ix_runs_top", ["status", "id"], _NO_PARENT)
    op.create_index("ix_runs_correlation", "runs", ["correlation_id", "id"])


def _create(name: str, columns: list[str], where: sa.TextClause) -> None:
    op.create_index(name, "runs", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for index in _INDEXES:
        op.drop_index(index, table_name="runs")
