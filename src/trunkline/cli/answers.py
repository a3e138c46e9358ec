"""
The shapes of the REST API's answers, as types; `cli.client` hands them out.

They describe dictionaries and cost nothing at run time. What the server says beyond them is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from trunkline.jsontypes import Json, JsonObject


class Problem(TypedDict, total=False):
    type: str
    title: str
    status: int
    detail: str
    fix: str
    fix_command: str | None
    errors: list[dict[str, object]]
    correlation_id: str


class Failure(TypedDict):
    """`error` of a run or a step."""

    code: str
    message: str
    fix: str
    fix_command: NotRequired[str | None]
    cause_item: NotRequired[int | None]


class WaitingFor(TypedDict):
    kind: str
    text: str
    until: str | None


class Items(TypedDict):
    total: int
    pending: int
    running: int
    waiting: int
    completed: int
    failed: int
    skipped: int
    cancelled: int


class _Step(TypedDict):
    name: str
    status: str
    agent: str
    protocol: str | None
    attempts: int
    input: Json
    output: Json
    error: Failure | None
    waiting_for: WaitingFor | None
    warnings: list[str]
    started_at: str | None
    finished_at: str | None


class _Child(TypedDict):
    run_id: str


class Child(_Child, total=False):
    status: str


class Parent(TypedDict):
    run_id: str
    step: str


class Step(_Step, total=False):
    items: Items
    workflow: str
    child: Child


class WorkflowReference(TypedDict):
    name: str
    version: int


class InboxItem(TypedDict):
    id: str
    run_id: str
    workflow: WorkflowReference
    step: str
    agent: str
    kind: str
    text: str
    data: Json
    since: str
    until: str | None
    reply_url: str


class RunSummary(TypedDict):
    id: str
    workflow: WorkflowReference
    status: str
    error: Failure | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class _Run(RunSummary):
    input: Json
    output: Json
    correlation_id: str
    steps: list[Step]


class Run(_Run, total=False):
    retry_of: str
    cancel_requested_at: str
    parent: Parent


class Event(TypedDict):
    seq: int
    type: str
    at: str
    data: JsonObject


class SavedWorkflow(TypedDict):
    id: str
    name: str
    version: int
    warnings: list[dict[str, object]]
