"""Runs: start, read, watch, steer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from fastapi import Depends, FastAPI, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_json, decode_object, read_body
from trunkline.api.event_streams import EVENT_STREAM, EventStream, RunsChangedStream
from trunkline.api.execution import IDEMPOTENCY_KEY, MAX_VERSION, MAX_WAIT_SECONDS, read_execution, read_key
from trunkline.api.headers import correlation_id_of
from trunkline.api.operations import JSON, LOCATION, Documentation, add_operation, answer, body, problems, ref
from trunkline.api.paging import DEFAULT_LIMIT, Limit, NumberCursor, TextCursor, decode_cursor, page
from trunkline.api.request_spans import begin_request
from trunkline.api.run_search import read_search
from trunkline.api.services import Services
from trunkline.api.views import (
    error_codes_json,
    events_json,
    run_json,
    runs_json,
    step_json,
    steps_json,
    wire_json,
)
from trunkline.errors import Invalid
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.machine.inputs import ResolvedOutcome
from trunkline.machine.state import FINAL_RUN_STATUSES, StepStatus
from trunkline.messages import ReplyMessage
from trunkline.services.runs.har import MEDIA_TYPE as HAR
from trunkline.services.runs.har import to_har
from trunkline.services.runs.search import RunSearch
from trunkline.services.runs.stored_exchanges import decode_exchange
from trunkline.telemetry.traces import TraceSpan
from trunkline.workflow import item_index

RUNS = "/api/v1/runs"
EXECUTE = "/api/v1/workflows/{workflow}/execute"
RunPath = Annotated[str, Path(description="The run's id.")]
StepPath = Annotated[str, Path(description="The step's name.")]
StepStatuses = Annotated[
    list[StepStatus] | None,
    Query(
        description="Only those in this state; several: in any of them. All steps and items of the run are looked"
        " through for each page, as they are without it."
    ),
]
# What every store can hold as a number.
_MAX_SEQ = 10**18 - 1
MOST_ATTEMPTS = 2**31 - 1


class _Retry(msgspec.Struct, forbid_unknown_fields=True):
    from_step: str | None = None
    from_start: bool = False
    input: Json | msgspec.UnsetType = msgspec.UNSET
    step_input: Json | msgspec.UnsetType = msgspec.UNSET


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    text: str | msgspec.UnsetType = msgspec.UNSET
    data: JsonObject | list[Json] | str | int | float | bool | msgspec.UnsetType = msgspec.UNSET
    # Empty text is an answer; a message without any part is none.
    parts: Annotated[list[JsonObject], msgspec.Meta(min_length=1)] | msgspec.UnsetType = msgspec.UNSET
    # Of the inbox: the question that is meant.
    item: str | msgspec.UnsetType = msgspec.UNSET


class _Resolution(msgspec.Struct, forbid_unknown_fields=True):
    outcome: ResolvedOutcome
    output: Json = None


class RunRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs = services.runs

    async def execute(self, request: Request) -> Response:
        """
        Starts a run. The body is the run's input; an empty one is `{}`.

        With `wait` the answer comes when the run is final, or when the time is up.
        """
        with begin_request(self._services.traces, request.scope, EXECUTE) as segment:
            response = await self._execute(request, segment)
            segment.note({"http.response.status_code": response.status_code})
            return response

    async def _execute(self, request: Request, segment: TraceSpan) -> Response:
        asked = read_execution(request)
        content = await self._body(request)
        started = await self._runs.execute(
            request.path_params["workflow"],
            asked.version,
            decode_json(content) if content else {},
            correlation_id=correlation_id_of(request.scope),
            idempotency_key=asked.idempotency_key,
            trace=segment.trace,
        )
        segment.note({"trunkline.run_id": started.run_id})
        if asked.wait is not None:
            await self._runs.wait(started.run_id, asked.wait)
        view = await self._runs.get(started.run_id)
        asked_to_wait = asked.wait is not None or not started.created
        finished = asked_to_wait and view.record.status in FINAL_RUN_STATUSES
        return _run_response(run_json(view), started.run_id, 200 if finished else 202)

    async def get(self, request: Request) -> Response:
        """The run with all its steps."""
        payloads = _said(request, _STEP_PAYLOADS, otherwise=True)
        view = await self._runs.get(RunId(request.path_params["run"]))
        return Response(run_json(view, step_payloads=payloads), media_type=JSON)

    async def list(
        self,
        asked: Annotated[RunSearch, Depends(read_search)],
        limit: Limit = DEFAULT_LIMIT,
        cursor: TextCursor = None,
        payloads: Annotated[
            bool, Query(description="`false`: without input and output, which may be long.")
        ] = True,
    ) -> Response:
        """Runs without their steps, newest first. A run must be all that is asked for."""
        before = decode_cursor(cursor)
        found = await self._runs.list(
            asked, limit=limit + 1, before=None if before is None else RunId(before), payloads=payloads
        )
        runs, next_cursor = page(found, limit, lambda run: run.record.id)
        return Response(runs_json(runs, next_cursor, payloads=payloads), media_type=JSON)

    async def changes(self) -> Response:
        """
        A doorbell for whoever shows a list of runs: `runs_changed` when some run was begun or has moved.

        A stream of server-sent events. It does not say which run: read the list again, and once more after each
        connection, since rings are not kept. At most two come in a second, each for all that happened before.
        """
        return RunsChangedStream(self._services)

    async def steps(
        self,
        run: RunPath,
        *,
        limit: Limit = DEFAULT_LIMIT,
        cursor: NumberCursor = None,
        of: Annotated[
            str | None,
            Query(
                description="A step with `for_each`: its items that have begun, instead of the run's steps."
            ),
        ] = None,
        status: StepStatuses = None,
        payloads: Annotated[
            bool, Query(description="`false`: without input and output, which may be long.")
        ] = True,
    ) -> Response:
        """The run's steps in the order of the definition, those not begun yet too; or the items of one step."""
        begin = int(cursor or 0)
        if of is not None:
            items = await self._runs.items(
                RunId(run), of, limit=limit + 1, after=begin - 1, statuses=status or ()
            )
            shown, next_cursor = page(items, limit, lambda item: item_index(item.state.name) + 1)
            return Response(steps_json(shown, next_cursor, payloads=payloads), media_type=JSON)
        view = await self._runs.get(RunId(run))
        numbered = [
            (number, step)
            for number, step in enumerate(view.steps[begin:], begin + 1)
            if not status or step.state.status in status
        ]
        found, next_cursor = page(numbered, limit, lambda step: step[0])
        steps = [step for _, step in found]
        return Response(steps_json(steps, next_cursor, payloads=payloads), media_type=JSON)

    async def step(self, run: RunPath, step: StepPath) -> Response:
        """One step of the run, or one item of a step: `check[17]`."""
        return Response(step_json(await self._runs.step(RunId(run), step)), media_type=JSON)

    async def events(
        self,
        request: Request,
        run: RunPath,
        *,
        limit: Limit = DEFAULT_LIMIT,
        cursor: NumberCursor = None,
        after: Annotated[
            int | None,
            Query(ge=0, le=_MAX_SEQ, description="Only events after this number; instead of `cursor`."),
        ] = None,
        step: Annotated[
            str | None,
            Query(
                description="Only events of this step, or of one item: `check[17]`. The run's events are read"
                " through until the page is full."
            ),
        ] = None,
        last_event_id: Annotated[
            int | None,
            Header(
                alias="Last-Event-ID", ge=0, le=_MAX_SEQ, description="Resumes a stream after this number."
            ),
        ] = None,
    ) -> Response:
        """
        The run's history, oldest first: as pages, or while it grows.

        `Accept: text/event-stream` asks for a stream of server-sent events; it ends after the final one.
        """
        run_id = RunId(run)
        begin = after or int(cursor or 0)
        if EVENT_STREAM in request.headers.get("accept", ""):
            # Before the stream begins: an unknown run is a problem, not an empty stream.
            await self._runs.status(run_id)
            seen = begin if last_event_id is None else last_event_id
            return EventStream(self._services, run_id, seen, step=step)
        found = await self._runs.events(run_id, after=begin, limit=limit + 1, step=step)
        events, next_cursor = page(found, limit, lambda event: event.seq)
        return Response(events_json(events, next_cursor), media_type=JSON)

    async def wire(
        self,
        run: RunPath,
        limit: Limit = DEFAULT_LIMIT,
        cursor: NumberCursor = None,
        step: Annotated[
            str | None,
            Query(
                description="Only exchanges of this step, or of one item: `check[17]`. The run's exchanges are"
                " looked through until the page is full."
            ),
        ] = None,
        attempt: Annotated[
            int | None,
            Query(ge=1, le=MOST_ATTEMPTS, description="Only exchanges of this attempt, likewise."),
        ] = None,
        form: Annotated[
            Literal["json", "har"],
            Query(alias="format", description="`har`: an HTTP Archive 1.2; `log._next_cursor` leads on."),
        ] = "json",
        payloads: Annotated[
            bool,
            Query(description="`false`: with empty headers and bodies, and without frames; not of a HAR."),
        ] = True,
    ) -> Response:
        """What went over the wire, oldest first: every HTTP exchange with an agent, redacted and cut."""
        found = await self._runs.exchanges(
            RunId(run), after=int(cursor or 0), limit=limit + 1, step=step, attempt=attempt
        )
        exchanges, next_cursor = page(found, limit, lambda exchange: exchange[0])
        if form == "har":
            archive = to_har((decode_exchange(record) for _, record in exchanges), next_cursor=next_cursor)
            return Response(encode(archive), media_type=HAR)
        return Response(wire_json(exchanges, next_cursor, payloads=payloads), media_type=JSON)

    async def cancel(self, run: RunPath) -> Response:
        """Cancels a run; agents that can be told are told."""
        await self._runs.cancel(RunId(run))
        return await self._accepted(RunId(run))

    async def pause(self, run: RunPath) -> Response:
        """Pauses a run: calls in flight end, no other starts."""
        await self._runs.pause(RunId(run))
        return await self._accepted(RunId(run))

    async def resume(self, run: RunPath) -> Response:
        """Lets a paused run go on."""
        await self._runs.resume(RunId(run))
        return await self._accepted(RunId(run))

    async def retry(self, request: Request, run: RunPath) -> Response:
        """Starts a new run that keeps the completed outputs of a finished one, as far as it is not told otherwise."""
        asked = convert(decode_object(await self._body(request) or b"{}"), _Retry)
        if asked.from_start and asked.from_step is not None:
            raise Invalid("from_start and from_step exclude each other.", fix="Send one of them.")
        with begin_request(self._services.traces, request.scope, f"{RUNS}/{{run}}/retry") as segment:
            started = await self._runs.retry(
                RunId(run),
                from_step=asked.from_step,
                from_start=asked.from_start,
                run_input=asked.input,
                step_input=asked.step_input,
                correlation_id=correlation_id_of(request.scope),
                idempotency_key=read_key(request),
                trace=segment.trace,
            )
            segment.note({"trunkline.run_id": started.run_id, "http.response.status_code": 202})
        return await self._accepted(started.run_id)

    async def reply(self, request: Request, run: RunPath, step: StepPath) -> Response:
        """Answers the question that a waiting step has asked."""
        reply = convert(decode_object(await self._body(request)), _Reply)
        given = {
            name: value for name, value in msgspec.structs.asdict(reply).items() if value is not msgspec.UNSET
        }
        item = given.pop("item", None)
        if not given:
            raise Invalid("The reply is empty.", fix="Send at least one of text, data and parts.")
        await self._runs.reply(RunId(run), step, ReplyMessage(**given), item)
        return await self._accepted(RunId(run))

    async def resolve(self, request: Request, run: RunPath, step: StepPath) -> Response:
        """Says what became of a call whose outcome is not known."""
        resolution = convert(decode_object(await self._body(request)), _Resolution)
        await self._runs.resolve(RunId(run), step, resolution.outcome, resolution.output)
        return await self._accepted(RunId(run))

    async def _body(self, request: Request) -> bytes:
        return await read_body(request, self._services.limits.max_body_bytes)

    async def _accepted(self, run_id: RunId) -> Response:
        return _run_response(run_json(await self._runs.get(run_id)), run_id, 202)


async def _error_codes() -> Response:
    """Every code that the error of a step or a run can have."""
    return Response(error_codes_json(), media_type=JSON)


def _said(request: Request, name: str, *, otherwise: bool) -> bool:
    """A flag of the query, for an operation that reads its request by itself."""
    match request.query_params.get(name):
        case None:
            return otherwise
        case "true" | "false" as said:
            return said == "true"
        case other:
            raise Invalid(
                f"{name} is {other!r}; it can be true or false.", fix=f"Leave {name} out, or correct it."
            )


def _run_response(content: bytes, run_id: RunId, status: int) -> Response:
    return Response(content, status, {"Location": f"{RUNS}/{run_id}"}, media_type=JSON)


def _path(name: str, description: str) -> Documentation:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
    }


_STEP_PAYLOADS = "step_payloads"
_STEP_PAYLOADS_PARAMETER: Documentation = {
    "name": _STEP_PAYLOADS,
    "in": "query",
    "description": "`false`: the steps without their input and output, which may be long.",
    "schema": {"type": "boolean", "default": True},
}

_KEY_PARAMETER: Documentation = {
    "name": IDEMPOTENCY_KEY,
    "in": "header",
    "description": "The same key and body give the same run; another body is refused.",
    "schema": {"type": "string", "pattern": "^[ -~]{1,255}$"},
}

_EXECUTE_PARAMETERS: list[Documentation] = [
    _path("workflow", "The workflow's name or id."),
    {
        "name": "version",
        "in": "query",
        "description": "The version to run; the latest one if left out.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_VERSION},
    },
    {
        "name": "wait",
        "in": "query",
        "description": f"Seconds to wait for the end, {MAX_WAIT_SECONDS:g} at most.",
        "schema": {"type": "number", "minimum": 0},
    },
    _KEY_PARAMETER,
]


def add_run_routes(app: FastAPI, routes: RunRoutes) -> None:
    _add_starting(app, routes)
    _add_reading(app, routes)
    _add_steering(app, routes)


def _add_starting(app: FastAPI, routes: RunRoutes) -> None:
    add_operation(
        app, f"POST {EXECUTE}", routes.execute, name="execute_workflow", tag="runs",
        ready=True,
        extra={
            "parameters": _EXECUTE_PARAMETERS,
            **body({"description": "The run's input."}, required=False),
        },
        responses={
            200: answer("Run", "The run, finished.", headers=LOCATION),
            202: answer("Run", "The run, started.", headers=LOCATION),
            **problems(400, 404, 413, 422),
        },
    )  # fmt: skip


def _add_reading(app: FastAPI, routes: RunRoutes) -> None:
    # Before the runs themselves: no run has this id.
    add_operation(
        app, f"GET {RUNS}/changes", routes.changes, name="watch_runs", tag="runs",
        responses={
            200: answer(None, "The stream.", content={EVENT_STREAM: {"schema": {"type": "string"}}}),
            **problems(),
        },
    )  # fmt: skip
    add_operation(
        app, f"GET {RUNS}/{{run}}", routes.get, name="get_run", tag="runs", ready=True,
        extra={"parameters": [_path("run", "The run's id."), _STEP_PAYLOADS_PARAMETER]},
        responses={200: answer("Run", "The run."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {RUNS}", routes.list, name="list_runs", tag="runs",
        responses={200: answer("RunPage", "A page of runs."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {RUNS}/{{run}}/steps", routes.steps, name="list_run_steps", tag="runs",
        responses={200: answer("StepPage", "A page of steps."), **problems(404, 422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {RUNS}/{{run}}/steps/{{step}}", routes.step, name="get_run_step", tag="runs",
        responses={200: answer("Step", "The step."), **problems(404)},
    )  # fmt: skip
    add_operation(
        app, "GET /api/v1/error-codes", _error_codes, name="list_error_codes", tag="runs",
        responses={200: answer("ErrorCodeList", "All of them."), **problems()},
    )  # fmt: skip
    add_operation(
        app, f"GET {RUNS}/{{run}}/events", routes.events, name="list_run_events", tag="runs",
        responses={
            200: answer("EventPage", "A page of events, or the stream.",
                content={EVENT_STREAM: {"schema": {"type": "string"}}},
            ),
            **problems(404, 422),
        },
    )  # fmt: skip
    add_operation(
        app, f"GET {RUNS}/{{run}}/wire", routes.wire, name="list_run_exchanges", tag="runs",
        responses={
            200: answer(
                "WirePage",
                "A page of exchanges.",
                content={HAR: {"schema": {"type": "object", "description": "An HTTP Archive 1.2."}}},
            ),
            **problems(404, 422),
        },
    )  # fmt: skip


def _add_steering(app: FastAPI, routes: RunRoutes) -> None:
    accepted = answer("Run", "The run as it is now.", headers=LOCATION)
    for name, endpoint in (("cancel", routes.cancel), ("pause", routes.pause), ("resume", routes.resume)):
        add_operation(
            app, f"POST {RUNS}/{{run}}/{name}", endpoint, name=f"{name}_run", tag="runs",
            responses={202: accepted, **problems(404, 409)},
        )  # fmt: skip
    with_body = problems(400, 404, 409, 413, 422)
    add_operation(
        app, f"POST {RUNS}/{{run}}/retry", routes.retry, name="retry_run", tag="runs",
        extra={"parameters": [_KEY_PARAMETER], **body(ref("RetryRequest"), required=False)},
        responses={202: answer("Run", "The new run.", headers=LOCATION), **with_body},
    )  # fmt: skip
    add_operation(
        app, f"POST {RUNS}/{{run}}/steps/{{step}}/reply", routes.reply, name="reply_to_step", tag="runs",
        extra=body(ref("ReplyRequest")), responses={202: accepted, **with_body},
    )  # fmt: skip
    add_operation(
        app, f"POST {RUNS}/{{run}}/steps/{{step}}/resolve", routes.resolve, name="resolve_step", tag="runs",
        extra=body(ref("ResolveRequest")), responses={202: accepted, **with_body},
    )  # fmt: skip
