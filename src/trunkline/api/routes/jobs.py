"""Bulk operations on runs: start, list, show and cancel them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.middleware.auth import role_of
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.parameters import Parameters, instant
from trunkline.api.resources.common import page_of
from trunkline.api.resources.jobs import (
    BulkFilter,
    BulkRunRequest,
    JobPageResource,
    JobResource,
    job_resource,
)
from trunkline.api.roles import allows
from trunkline.api.routes.runs import RUNS, read_labels
from trunkline.api.routing import LOCATION, Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import NotAllowed
from trunkline.services.runs.bulk import BulkRequest
from trunkline.services.runs.search import RunSearch

JOBS = "/api/v1/jobs"


class JobParameters(Parameters, frozen=True, kw_only=True):
    job: Annotated[str, msgspec.Meta(description="The job's id.")]


class JobRoutes:
    def __init__(self, services: Services) -> None:
        self._bulk = services.bulk_operations
        self._limits = services.limits

    async def start(self, request: Request, given: Parameters) -> Response:
        """
        Start an action on all runs that match a filter.

        The job acts on runs that exist now, a page at a time, newest first. With `dry_run`, it only counts them.
        `delete` deletes finished runs with all their data, and requires the role admin.
        """
        del given
        asked = convert(decode_object(await read_body(request, self._limits.max_body_bytes)), BulkRunRequest)
        role = role_of(request.scope)
        if asked.action == "delete" and not allows(role, "admin"):
            raise NotAllowed(
                f"The API key has the role {role}, but deleting runs requires admin.",
                fix="Use a key with this role. To create one: trunkline keys create NAME --role admin.",
            )
        job = await self._bulk.start(
            BulkRequest(
                action=asked.action,
                search=_search(asked.filter),
                labels={} if asked.labels is msgspec.UNSET else asked.labels,
                dry_run=asked.dry_run,
            )
        )
        return json_response(job_resource(job), 202, {"Location": f"{JOBS}/{job.id}"})

    async def list(self, _request: Request, given: TextPageParameters) -> Response:
        """List bulk operations, newest first."""
        found = await self._bulk.list(limit=given.limit + 1, before=decode_cursor(given.cursor))
        jobs, next_cursor = page(found, given.limit, lambda job: job.id)
        return json_response(page_of([job_resource(job) for job in jobs], next_cursor))

    async def get(self, _request: Request, given: JobParameters) -> Response:
        """Get a bulk operation with its progress."""
        return json_response(job_resource(await self._bulk.get(given.job)))

    async def cancel(self, _request: Request, given: JobParameters) -> Response:
        """Cancel a bulk operation. What it has done stays done."""
        return json_response(job_resource(await self._bulk.cancel(given.job)), 202)


def _search(given: BulkFilter) -> RunSearch:
    status = [] if given.status is msgspec.UNSET else given.status
    label = [] if given.label is msgspec.UNSET else given.label
    if isinstance(label, dict):
        label = [f"{key}:{value}" for key, value in label.items()]
    labels = read_labels([label] if isinstance(label, str) else label, "filter.label")
    return RunSearch(
        statuses=(status,) if isinstance(status, str) else tuple(dict.fromkeys(status)),
        workflow=given.workflow or None,
        agent=given.agent or None,
        text=given.q or None,
        labels=tuple(labels.items()),
        since=instant(given.created_after or None),
        until=instant(given.created_before or None),
    )


def job_operations(services: Services) -> list[Operation]:
    routes = JobRoutes(services)
    return [
        operation(
            f"POST {RUNS}/bulk",
            routes.start,
            Parameters,
            name="start_bulk_operation",
            tag="runs",
            body=Body(BulkRunRequest),
            responses={202: ResponseSpec("The job.", JobResource, headers=LOCATION)},
            problems=(400, 409, 413, 422),
        ),
        operation(
            f"GET {JOBS}",
            routes.list,
            TextPageParameters,
            name="list_jobs",
            tag="runs",
            responses={200: ResponseSpec("A page of jobs.", JobPageResource)},
            problems=(422,),
        ),
        operation(
            f"GET {JOBS}/{{job}}",
            routes.get,
            JobParameters,
            name="get_job",
            tag="runs",
            responses={200: ResponseSpec("The job.", JobResource)},
            problems=(404,),
        ),
        operation(
            f"POST {JOBS}/{{job}}/cancel",
            routes.cancel,
            JobParameters,
            name="cancel_job",
            tag="runs",
            responses={202: ResponseSpec("The job as it is now.", JobResource)},
            problems=(404, 409),
        ),
    ]
