"""Runs: read and watch runs, steps, events and exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.bodies import convert, decode_object, read_body
from trunkline.api.event_streams import EVENT_STREAM, EventStream, RunsChangedStream
from trunkline.api.paging import (
    NumberPageParameters,
    TextPageParameters,
    decode_cursor,
    encode_cursor,
    page,
    page_within,
    read_within,
)
from trunkline.api.parameters import MAX_ATTEMPT, Parameters, in_header, instant
from trunkline.api.resources.common import page_of
from trunkline.api.resources.exchanges import WirePage, exchange_resources
from trunkline.api.resources.run_requests import RunPatch
from trunkline.api.resources.runs import (
    ErrorCodeList,
    EventPage,
    RunPage,
    RunResource,
    StepPage,
    StepResource,
    error_codes,
    event_resource,
    run_resource,
    run_summary,
    step_resource,
)
from trunkline.api.routing import Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Finding, Invalid
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject, encode
from trunkline.machine.state import RunStatus, StepStatus
from trunkline.services.runs.har import MEDIA_TYPE as HAR
from trunkline.services.runs.har import to_har
from trunkline.services.runs.search import ListedRun, RunSearch
from trunkline.services.runs.stored_exchanges import decode_exchange
from trunkline.workflow import LABEL_PATTERN, check_label_count, item_index, parse_label

RUNS = "/api/v1/runs"
# Every store can hold numbers of this size.
_MAX_SEQ = 10**18 - 1
_LONGEST_TEXT = 200
_OF_CHILDREN = "For a child run, the creation time of its topmost parent counts."

RunIdParameter = Annotated[str, Meta(description="The run's id.")]
# The pattern only documents the schema: `read_labels` has a better message.
LabelParameter = Annotated[str, Meta(extra_json_schema={"pattern": LABEL_PATTERN})]
Payloads = Annotated[bool, Meta(description="`false` omits input and output, which can be large.")]


class RunParameters(Parameters, frozen=True, kw_only=True):
    run: RunIdParameter


class StepParameters(Parameters, frozen=True, kw_only=True):
    run: RunIdParameter
    step: Annotated[str, Meta(description="The step's name.")]


class GetRunParameters(Parameters, frozen=True, kw_only=True):
    run: RunIdParameter
    step_payloads: Annotated[
        bool, Meta(description="`false` omits the input and output of the steps, which can be large.")
    ] = True


class ListRunsParameters(TextPageParameters, frozen=True, kw_only=True):
    payloads: Annotated[
        bool, Meta(description="`true`: with input and output. The page is shorter if they are large.")
    ] = False
    status: (
        Annotated[list[RunStatus], Meta(description="Return only runs with one of these statuses.")] | None
    ) = None
    workflow: (
        Annotated[str, Meta(description="Return only runs of this workflow: its name or id.")] | None
    ) = None
    agent: (
        Annotated[str, Meta(description="Return only runs of workflow versions that call this agent.")] | None
    ) = None
    q: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=_LONGEST_TEXT,
                description="Return only runs whose id starts with this text, whose workflow name contains it "
                "(ignoring case), or whose correlation id is equal to it.",
            ),
        ]
        | None
    ) = None
    label: (
        Annotated[
            list[LabelParameter],
            Meta(
                description="Return only runs with this label, as `key:value`. Repeat it for runs that have all of "
                "several labels."
            ),
        ]
        | None
    ) = None
    since: (
        Annotated[
            datetime,
            Meta(
                tz=True,
                description=f"Return only runs created at or after this time. Precision: milliseconds. {_OF_CHILDREN}",
            ),
        ]
        | None
    ) = None
    until: (
        Annotated[
            datetime,
            Meta(
                tz=True,
                description=f"Return only runs created before this time. Precision: milliseconds. {_OF_CHILDREN}",
            ),
        ]
        | None
    ) = None
    parent: Annotated[str, Meta(description="Return only child runs of this run: its id.")] | None = None
    children: Annotated[bool, Meta(description="`false` excludes child runs.")] = True

    def search(self) -> RunSearch:
        return RunSearch(
            statuses=tuple(dict.fromkeys(self.status or ())),
            workflow=self.workflow,
            agent=self.agent,
            text=self.q,
            labels=tuple(read_labels(self.label or ()).items()),
            since=instant(self.since),
            until=instant(self.until),
            parent=None if self.parent is None else RunId(self.parent),
            with_children=self.children,
        )


class ListStepsParameters(NumberPageParameters, frozen=True, kw_only=True):
    run: RunIdParameter
    of: (
        Annotated[
            str,
            Meta(
                description="Name of a `for_each` step. Returns its items that have started, instead of the "
                "run's steps."
            ),
        ]
        | None
    ) = None
    status: (
        Annotated[
            list[StepStatus],
            Meta(description="Return only steps or items with one of these statuses."),
        ]
        | None
    ) = None
    payloads: Payloads = True


class ListEventsParameters(NumberPageParameters, frozen=True, kw_only=True):
    run: RunIdParameter
    after: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=_MAX_SEQ,
                description="Return only events after this number. Use it instead of `cursor`.",
            ),
        ]
        | None
    ) = None
    step: (
        Annotated[
            str,
            Meta(description="Return only events of this step, or of one item such as `check[17]`."),
        ]
        | None
    ) = None
    last_event_id: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=_MAX_SEQ,
                description="Resume the stream after the event with this number.",
                extra=in_header("Last-Event-ID"),
            ),
        ]
        | None
    ) = None


class ListExchangesParameters(NumberPageParameters, frozen=True, kw_only=True):
    run: RunIdParameter
    step: (
        Annotated[
            str,
            Meta(description="Return only exchanges of this step, or of one item such as `check[17]`."),
        ]
        | None
    ) = None
    attempt: (
        Annotated[int, Meta(ge=1, le=MAX_ATTEMPT, description="Return only exchanges of this attempt.")]
        | None
    ) = None
    format_: Annotated[
        Literal["json", "har"],
        Meta(description="`har` returns an HTTP Archive 1.2, with `log._next_cursor` for the next page."),
    ] = msgspec.field(default="json", name="format")
    payloads: Annotated[
        bool,
        Meta(description="`false` returns empty headers and bodies, and no frames. Has no effect on a HAR."),
    ] = True


def read_labels(texts: Sequence[str], place: str = "query.label") -> dict[str, str]:
    """Of a query, or at another place of the request; raises `Invalid`."""
    labels: dict[str, str] = {}
    findings: list[Finding] = []
    for position, text in enumerate(texts):
        try:
            key, value = parse_label(text)
        except ValueError as exc:
            findings.append(Finding(path=f"{place}.{position}", message=str(exc)))
            continue
        if labels.setdefault(key, value) != value:
            message = f"the label '{key}' is given twice, with different values"
            findings.append(Finding(path=f"{place}.{position}", message=message))
    if findings:
        raise Invalid("; ".join(each.message for each in findings[:3]), findings=findings)
    check_label_count(labels)
    return labels


class RunRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs = services.run_queries

    async def get(self, _request: Request, given: GetRunParameters) -> Response:
        """Get a run with all its steps."""
        view = await self._runs.get(RunId(given.run))
        return json_response(run_resource(view, step_payloads=given.step_payloads))

    async def change(self, request: Request, given: RunParameters) -> Response:
        """Change the labels of a run, whatever its status."""
        content = await read_body(request, self._services.limits.max_body_bytes)
        await self._services.run_labels.change(
            RunId(given.run), convert(decode_object(content), RunPatch).labels
        )
        return json_response(run_resource(await self._runs.get(RunId(given.run))))

    async def list(self, _request: Request, given: ListRunsParameters) -> Response:
        """List runs, newest first, without their steps. A run must match all filters."""
        cursor, search = decode_cursor(given.cursor), given.search()
        before = None if cursor is None else RunId(cursor)
        if given.payloads:
            runs, more = await read_within(
                lambda after, limit: self._runs.list(search, limit=limit, before=after, payloads=True),
                before,
                given.limit,
                key=_run_id,
                size_bytes=lambda run: len(run.record.input) + len(run.record.output or b""),
            )
            next_cursor = encode_cursor(runs[-1].record.id) if more else None
        else:
            found = await self._runs.list(search, limit=given.limit + 1, before=before, payloads=False)
            runs, next_cursor = page(found, given.limit, _run_id)
        return json_response(
            page_of([run_summary(run, payloads=given.payloads) for run in runs], next_cursor)
        )

    async def changes(self, _request: Request) -> Response:
        """
        Watch for changes of runs.

        A stream of server-sent events. `runs_changed` means that a run was started or has changed, but not which one,
        so read the list again. Also read it after each new connection, because missed events are not sent again. At
        most two events are sent per second.
        """
        return RunsChangedStream(self._services)

    async def steps(self, _request: Request, given: ListStepsParameters) -> Response:
        """List a run's steps in the order of the definition, or the items of one `for_each` step."""
        begin = int(given.cursor or 0)
        run_id, limit, statuses = RunId(given.run), given.limit, given.status or ()
        if given.of is not None:
            of = given.of
            steps, more = await read_within(
                lambda after, limit: self._runs.items(
                    run_id, of, limit=limit, after=after, statuses=statuses
                ),
                begin - 1,
                limit,
                key=lambda item: item_index(item.state.name),
                size_bytes=lambda item: len(item.state.input or b"") + len(item.state.output or b""),
            )
            next_cursor = encode_cursor(item_index(steps[-1].state.name) + 1) if more else None
        else:
            view = await self._runs.get(run_id)
            numbered = [
                (number, step)
                for number, step in enumerate(view.steps[begin:], begin + 1)
                if not statuses or step.state.status in statuses
            ]
            found, next_cursor = page(numbered, limit, lambda step: step[0])
            steps = [step for _, step in found]
        return json_response(
            page_of([step_resource(step, payloads=given.payloads) for step in steps], next_cursor)
        )

    async def step(self, _request: Request, given: StepParameters) -> Response:
        """Get one step of a run, or one item such as `check[17]`."""
        return json_response(step_resource(await self._runs.step(RunId(given.run), given.step)))

    async def events(self, request: Request, given: ListEventsParameters) -> Response:
        """
        List the events of a run, oldest first.

        With `Accept: text/event-stream`, the response is a stream of server-sent events that ends with the run.
        """
        run_id = RunId(given.run)
        begin = given.after or int(given.cursor or 0)
        if EVENT_STREAM in request.headers.get("accept", ""):
            # Checked before the stream starts, because an unknown run is a 404 and not an empty stream.
            await self._runs.status(run_id)
            seen = begin if given.last_event_id is None else given.last_event_id
            return EventStream(self._services, run_id, seen, step=given.step)
        events, next_cursor = await page_within(
            lambda after, limit: self._runs.events(run_id, after=after or 0, limit=limit, step=given.step),
            begin,
            given.limit,
            key=lambda event: event.seq,
            size_bytes=lambda event: len(event.data),
        )
        return json_response(page_of([event_resource(event) for event in events], next_cursor))

    async def wire(self, _request: Request, given: ListExchangesParameters) -> Response:
        """List a run's HTTP exchanges with agents, oldest first, redacted and truncated."""
        exchanges, more = await read_within(
            lambda after, limit: self._runs.exchanges(
                RunId(given.run), after=after, limit=limit, step=given.step, attempt=given.attempt
            ),
            int(given.cursor or 0),
            given.limit,
            key=lambda exchange: exchange[0],
            size_bytes=lambda exchange: len(exchange[1]),
        )
        next_cursor = encode_cursor(exchanges[-1][0]) if more else None
        if given.format_ == "har":
            archive = to_har((decode_exchange(record) for _, record in exchanges), next_cursor=next_cursor)
            return Response(encode(archive), media_type=HAR)
        return json_response(page_of(exchange_resources(exchanges, payloads=given.payloads), next_cursor))


def _run_id(run: ListedRun) -> RunId:
    return run.record.id


async def _error_codes(_request: Request) -> Response:
    """List the error codes of steps and runs."""
    return json_response(error_codes())


def run_operations(services: Services) -> list[Operation]:
    routes = RunRoutes(services)
    one = f"{RUNS}/{{run}}"
    stream: dict[str, JsonObject] = {EVENT_STREAM: {"type": "string"}}
    archive: dict[str, JsonObject] = {HAR: {"type": "object", "description": "An HTTP Archive 1.2."}}
    return [
        # Before the route of a single run: no run has this id.
        operation(
            f"GET {RUNS}/changes", routes.changes, name="watch_runs", tag="runs",
            responses={200: ResponseSpec("The stream.", content=stream)},
        ),
        operation(
            f"GET {one}", routes.get, GetRunParameters, name="get_run", tag="runs",
            responses={200: ResponseSpec("The run.", RunResource)}, problems=(404, 422),
        ),
        operation(
            f"PATCH {one}", routes.change, RunParameters, name="change_run", tag="runs", body=Body(RunPatch),
            responses={200: ResponseSpec("The changed run.", RunResource)}, problems=(400, 404, 413, 422),
        ),
        operation(
            f"GET {RUNS}", routes.list, ListRunsParameters, name="list_runs", tag="runs",
            responses={200: ResponseSpec("A page of runs.", RunPage)}, problems=(422,),
        ),
        operation(
            f"GET {one}/steps", routes.steps, ListStepsParameters, name="list_run_steps", tag="runs",
            responses={200: ResponseSpec("A page of steps.", StepPage)}, problems=(404, 422),
        ),
        operation(
            f"GET {one}/steps/{{step}}", routes.step, StepParameters, name="get_run_step", tag="runs",
            responses={200: ResponseSpec("The step.", StepResource)}, problems=(404,),
        ),
        operation(
            "GET /api/v1/error-codes", _error_codes, name="list_error_codes", tag="runs",
            responses={200: ResponseSpec("All error codes.", ErrorCodeList)},
        ),
        operation(
            f"GET {one}/events", routes.events, ListEventsParameters, name="list_run_events", tag="runs",
            responses={200: ResponseSpec("A page of events, or the stream.", EventPage, content=stream)},
            problems=(404, 422),
        ),
        operation(
            f"GET {one}/wire", routes.wire, ListExchangesParameters, name="list_run_exchanges", tag="runs",
            responses={200: ResponseSpec("A page of exchanges.", WirePage, content=archive)}, problems=(404, 422),
        ),
    ]  # fmt: skip
