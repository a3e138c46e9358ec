"""Bulk operations on runs, and the jobs that do them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NotRequired, TypedDict

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.api.resources.common import NextCursor, Timestamp, time_or_none
from trunkline.api.resources.runs import LabelKey, LabelValue
from trunkline.clock import rfc3339
from trunkline.machine.state import RunStatus
from trunkline.services.runs.bulk import MAX_FAILURES_LISTED, BulkAction, BulkJob
from trunkline.services.runs.search import RunSearch
from trunkline.stores.port.automation.jobs import JobStatus
from trunkline.workflow import LABEL_PATTERN, MAX_LABELS

# The pattern only documents the schema: reading the label has a better message.
_Label = Annotated[str, Meta(extra_json_schema={"pattern": LABEL_PATTERN})]
_LONGEST_TEXT = 200
_PRECISION = "Precision: milliseconds."


class BulkFilter(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A run must meet all conditions. At least one is required. Child runs follow their parents."""

    status: (
        Annotated[
            RunStatus | list[RunStatus],
            Meta(description="One status or several. Defaults to those that the action applies to."),
        ]
        | UnsetType
    ) = UNSET
    workflow: Annotated[str, Meta(description="Name or id of the workflow.")] | UnsetType = UNSET
    label: (
        Annotated[
            _Label | list[_Label] | dict[LabelKey, LabelValue],
            Meta(description="A label, as `key:value`. A list or an object: runs with all of these labels."),
        ]
        | UnsetType
    ) = UNSET
    agent: Annotated[str, Meta(description="An agent that the run's workflow version calls.")] | UnsetType = (
        UNSET
    )
    q: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=_LONGEST_TEXT,
                description="The start of the run's id, a part of its workflow's name, or its correlation id.",
            ),
        ]
        | UnsetType
    ) = UNSET
    created_after: (
        Annotated[datetime, Meta(tz=True, description=f"Runs created at or after this time. {_PRECISION}")]
        | UnsetType
    ) = UNSET
    created_before: (
        Annotated[datetime, Meta(tz=True, description=f"Runs created before this time. {_PRECISION}")]
        | UnsetType
    ) = UNSET


class BulkRunRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    action: BulkAction
    filter: BulkFilter
    labels: (
        Annotated[
            dict[LabelKey, LabelValue | None],
            Meta(
                description="For the action `label`: labels to set. Null removes a label. Others stay as they are.",
                max_length=2 * MAX_LABELS,
            ),
        ]
        | UnsetType
    ) = UNSET
    dry_run: Annotated[bool, Meta(description="Only count the runs.")] = False


class BulkFilterResource(TypedDict):
    """The conditions of the request."""

    status: NotRequired[list[RunStatus]]
    workflow: NotRequired[str]
    label: NotRequired[list[str]]
    agent: NotRequired[str]
    q: NotRequired[str]
    created_after: NotRequired[Timestamp]
    created_before: NotRequired[Timestamp]


class BulkFailureResource(TypedDict):
    run_id: str
    message: Annotated[str, Meta(description="Why the action was not possible.")]


class JobResource(TypedDict):
    """A bulk operation on runs."""

    id: str
    action: BulkAction
    filter: BulkFilterResource
    labels: NotRequired[dict[str, str | None]]
    dry_run: bool
    status: JobStatus
    total: Annotated[int | None, Meta(description="How many runs match. Null while they are being counted.")]
    processed: Annotated[int, Meta(description="How many of them are done.")]
    succeeded: int
    failed: int
    failures: Annotated[
        list[BulkFailureResource],
        Meta(description=f"Runs for which the action was not possible: the first {MAX_FAILURES_LISTED}."),
    ]
    error: Annotated[str | None, Meta(description="Why the job has failed.")]
    created_by: Annotated[str | None, Meta(description="The name of the API key that started the job.")]
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None


class JobPageResource(TypedDict):
    items: list[JobResource]
    next_cursor: NextCursor


def job_resource(job: BulkJob) -> JobResource:
    progress = job.progress
    resource: JobResource = {
        "id": job.id,
        "action": job.request.action,
        "filter": _filter(job.request.search),
        "dry_run": job.request.dry_run,
        "status": job.status,
        "total": progress.total,
        "processed": progress.succeeded + progress.failed,
        "succeeded": progress.succeeded,
        "failed": progress.failed,
        "failures": [{"run_id": each.run_id, "message": each.message} for each in progress.failures],
        "error": progress.error,
        "created_by": job.created_by,
        "created_at": rfc3339(job.created_at),
        "started_at": time_or_none(job.started_at),
        "finished_at": time_or_none(job.finished_at),
    }
    if job.request.labels:
        resource["labels"] = job.request.labels
    return resource


def _filter(search: RunSearch) -> BulkFilterResource:
    resource: BulkFilterResource = {}
    if search.statuses:
        resource["status"] = list(search.statuses)
    if search.workflow is not None:
        resource["workflow"] = search.workflow
    if search.labels:
        resource["label"] = [f"{key}:{value}" for key, value in search.labels]
    if search.agent is not None:
        resource["agent"] = search.agent
    if search.text is not None:
        resource["q"] = search.text
    if search.since is not None:
        resource["created_after"] = rfc3339(search.since)
    if search.until is not None:
        resource["created_before"] = rfc3339(search.until)
    return resource
