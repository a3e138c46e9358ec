"""What is known of a run, line by line: as pages, or all of it as JSON lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import msgspec
from fastapi import FastAPI, Query
from starlette.responses import Response, StreamingResponse

from trunkline.api.operations import JSON, add_operation, answer, problems
from trunkline.api.paging import DEFAULT_LIMIT, Limit
from trunkline.api.routes.runs import MOST_ATTEMPTS, RUNS, RunPath
from trunkline.api.services import Services
from trunkline.api.views import page_json
from trunkline.clock import rfc3339
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.services.runs.logs import LogFilter, LogPosition, RunLogLine

JSON_LINES = "application/x-ndjson"
LogCursor = Annotated[
    str | None,
    Query(
        description="`next_cursor` of the page before; leave it out for the first page.",
        pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$",
    ),
]


class _Line(msgspec.Struct):
    at: str
    level: str
    source: str
    event: str
    step: str | None
    attempt: int | None
    text: str


class RunLogRoutes:
    def __init__(self, services: Services) -> None:
        self._runs = services.runs

    async def logs(
        self,
        run: RunPath,
        limit: Limit = DEFAULT_LIMIT,
        cursor: LogCursor = None,
        step: Annotated[str | None, Query(description="Only lines of this step.")] = None,
        attempt: Annotated[
            int | None, Query(ge=1, le=MOST_ATTEMPTS, description="Only lines of this attempt, or of none.")
        ] = None,
        form: Annotated[
            Literal["json", "lines"],
            Query(alias="format", description="`lines`: all lines from there on, each a JSON object."),
        ] = "json",
    ) -> Response:
        """
        What is known of a run, line by line: its history, what its agents have said meanwhile, and every exchange.

        The lines are made from what is stored, so they are the same whichever process is asked. What a process writes
        to its own log beside that is where its log goes.
        """
        lines = await self._runs.log(RunId(run), _place(cursor), LogFilter(step, attempt))
        if form == "lines":
            return StreamingResponse(_lines(lines), media_type=JSON_LINES)
        found: list[RunLogLine] = []
        async with aclosing(lines):
            async for line in lines:
                found.append(line)
                if len(found) > limit:
                    break
        more = len(found) > limit
        shown = found[:limit]
        return Response(
            page_json([_line(line) for line in shown], _cursor(shown[-1].position) if more else None),
            media_type=JSON,
        )


def _place(cursor: str | None) -> LogPosition:
    if cursor is None:
        return LogPosition()
    event, _, exchange = cursor.partition(".")
    return LogPosition(int(event), int(exchange))


def _cursor(place: LogPosition) -> str:
    return f"{place.event}.{place.exchange}"


def _line(line: RunLogLine) -> _Line:
    return _Line(rfc3339(line.at), line.level, line.source, line.event, line.step, line.attempt, line.text)


async def _lines(lines: AsyncGenerator[RunLogLine]) -> AsyncGenerator[bytes]:
    async with aclosing(lines):
        async for line in lines:
            yield encode(_line(line)) + b"\n"


def add_run_log_routes(app: FastAPI, services: Services) -> None:
    routes = RunLogRoutes(services)
    add_operation(
        app, f"GET {RUNS}/{{run}}/logs", routes.logs, name="list_run_logs", tag="runs",
        responses={
            200: answer("LogPage", "A page of lines.", content={JSON_LINES: {"schema": {"type": "string"}}}),
            **problems(404, 422),
        },
    )  # fmt: skip
