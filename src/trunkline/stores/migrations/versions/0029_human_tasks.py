"""
In whose inbox the steps are that wait for a person, and comments on them.

A program of the revision before lists no tasks, so no filter finds those that it creates meanwhile.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

UUID = sa.Text().with_variant(postgresql.UUID(as_uuid=False), "postgresql")
# Compared byte by byte, whatever the database's locale.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_IS_DUE = sa.text("due IS NOT NULL")
# Of the tasks that are open when the schema is upgraded. An empty name: it is in the inbox of nobody in particular.
_LIST_SQLITE = """
    INSERT OR IGNORE INTO listed_tasks(run_id, step, person, since, due)
    SELECT steps.run_id, steps.name, coalesce(people.value, ''), steps.waiting_since,
        json_extract(CAST(steps.waiting_for AS TEXT), '$.human_task.due')
    FROM steps LEFT JOIN json_each(CAST(steps.waiting_for AS TEXT), '$.human_task.assignees') AS people
    WHERE steps.waiting_kind = 'person' AND steps.status = 'WAITING' AND (people.value IS NOT NULL
        OR json_extract(CAST(steps.waiting_for AS TEXT), '$.human_task.due') IS NOT NULL)
"""
_LIST_POSTGRES = """
    INSERT INTO listed_tasks(run_id, step, person, since, due)
    SELECT tasks.run_id, tasks.name, coalesce(people.name, ''), tasks.waiting_since, (tasks.task->>'due')::bigint
    FROM (
        SELECT run_id, name, waiting_since, CASE
            -- No text of PostgreSQL has this character.
            WHEN strpos(convert_from(waiting_for, 'UTF8'), '\\u0000') = 0
            THEN convert_from(waiting_for, 'UTF8')::json->'human_task'
        END AS task FROM steps
        WHERE waiting_kind = 'person' AND status = 'WAITING'
    ) AS tasks LEFT JOIN LATERAL json_array_elements_text(tasks.task->'assignees') AS people(name) ON true
    WHERE people.name IS NOT NULL OR tasks.task->>'due' IS NOT NULL
    ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    op.create_table(
        "listed_tasks",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("step", TEXT, nullable=False),
        sa.Column("person", TEXT, nullable=False, comment="Or a group; empty: nobody in particular"),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger()),
        sa.PrimaryKeyConstraint("run_id", "step", "person"),
    )
    op.create_index("ix_listed_tasks_person", "listed_tasks", ["person", "since", "run_id", "step"])
    for name, columns in (("person_due", ["person", "due"]), ("due", ["due"])):
        op.create_index(
            f"ix_listed_tasks_{name}",
            "listed_tasks",
            [*columns, "run_id", "step"],
            sqlite_where=_IS_DUE,
            postgresql_where=_IS_DUE,
        )
    op.create_table(
        "task_comments",
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("step", TEXT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("replies", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("person", sa.Text()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "step", "attempts", "replies", "number"),
    )
    op.execute(_LIST_POSTGRES if op.get_context().dialect.name == "postgresql" else _LIST_SQLITE)


def downgrade() -> None:
    op.drop_table("task_comments")
    op.drop_table("listed_tasks")
