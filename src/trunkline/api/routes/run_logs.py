"""The log of a run, as pages or as JSON lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from trunkline.api.paging import CURSOR, DEFAULT_LIMIT, PageLimit
from trunkline.api.parameters import MAX_ATTEMPT, Parameters
from trunkline.api.resources.common import page_of
from trunkline.api.resources.runs import LogPage, log_line
from trunkline.api.routing import Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.services.runs.logs import LogFilter, LogPosition, RunLogLine

JSON_LINES = "application/x-ndjson"


class RunLogParameters(Parameters, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The run's id.")]
    limit: PageLimit = DEFAULT_LIMIT
    cursor: Annotated[str, Meta(description=CURSOR, pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")] | None = None
    step: Annotated[str, Meta(description="Return only lines of this step.")] | None = None
    attempt: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_ATTEMPT,
                description="Return only lines of this attempt, and lines without an attempt.",
            ),
        ]
        | None
    ) = None
    format_: Annotated[
        Literal["json", "lines"], Meta(description="`lines`: all lines from `cursor` on, as JSON lines.")
    ] = msgspec.field(default="json", name="format")


class RunLogRoutes:
    def __init__(self, services: Services) -> None:
        self._runs = services.run_queries

    async def logs(self, _request: Request, given: RunLogParameters) -> Response:
        """
        Get the log of a run: its events, the progress messages of its agents, and all exchanges.

        The lines are created from stored data, so every process returns the same lines. The logs of the processes
        themselves are not included.
        """
        wanted = LogFilter(given.step, given.attempt)
        lines = await self._runs.log(RunId(given.run), _place(given.cursor), wanted)
        if given.format_ == "lines":
            return StreamingResponse(_lines(lines), media_type=JSON_LINES)
        found: list[RunLogLine] = []
        async with aclosing(lines):
            async for line in lines:
                found.append(line)
                if len(found) > given.limit:
                    break
        shown = found[: given.limit]
        next_cursor = _cursor(shown[-1].position) if len(found) > given.limit else None
        return json_response(page_of([log_line(line) for line in shown], next_cursor))


def _place(cursor: str | None) -> LogPosition:
    if cursor is None:
        return LogPosition()
    event, _, exchange = cursor.partition(".")
    return LogPosition(int(event), int(exchange))


def _cursor(place: LogPosition) -> str:
    return f"{place.event}.{place.exchange}"


async def _lines(lines: AsyncGenerator[RunLogLine]) -> AsyncGenerator[bytes]:
    async with aclosing(lines):
        async for line in lines:
            yield encode(log_line(line)) + b"\n"


def run_log_operations(services: Services) -> list[Operation]:
    return [
        operation(
            "GET /api/v1/runs/{run}/logs", RunLogRoutes(services).logs, RunLogParameters, name="list_run_logs",
            tag="runs",
            responses={200: ResponseSpec("A page of lines.", LogPage, content={JSON_LINES: {"type": "string"}})},
            problems=(404, 422),
        )
    ]  # fmt: skip
