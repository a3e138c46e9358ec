"""Runs: start, pause, resume, cancel and retry them, and answer their questions."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from trunkline.api.bodies import convert, decode_json, decode_object, read_body
from trunkline.api.correlation_ids import correlation_id_of
from trunkline.api.parameters import MAX_VERSION, Parameters, in_header
from trunkline.api.resources.automation.human_tasks import ReplyRequest
from trunkline.api.resources.run_requests import ResolveRequest, RetryRequest
from trunkline.api.resources.runs import (
    RunResource,
    run_resource,
)
from trunkline.api.routes.runs import RUNS, LabelParameter, RunParameters, StepParameters, read_labels
from trunkline.api.routing import LOCATION, Body, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import Services
from trunkline.errors import Invalid
from trunkline.ids import RunId
from trunkline.machine.state import FINAL_RUN_STATUSES
from trunkline.messages import ReplyMessage, TraceContext
from trunkline.messages.trace import RAW_TRACEPARENT, RAW_TRACESTATE
from trunkline.services.operations.audit_log import current_actor
from trunkline.services.people.answers import GivenAnswer
from trunkline.telemetry.traces import Traces, TraceSpan
from trunkline.workflow.flow_control.reader import MAX_PRIORITY

EXECUTE = "/api/v1/workflows/{workflow}/execute"
# A waiting request holds a connection. A client that wants to wait longer polls the run.
MAX_WAIT_SECONDS = 300.0
IdempotencyKey = Annotated[
    str,
    Meta(
        pattern="^[ -~]{1,255}$",
        description="Repeating a request with the same key and body returns the same run. The same key with "
        "another body is rejected.",
        extra=in_header("Idempotency-Key"),
    ),
]


class ExecuteParameters(Parameters, frozen=True, kw_only=True):
    workflow: Annotated[str, Meta(description="The workflow's name or id.")]
    version: (
        Annotated[int, Meta(ge=1, le=MAX_VERSION, description="The version to run. Defaults to the latest.")]
        | None
    ) = None
    wait: (
        Annotated[
            float,
            Meta(ge=0, description=f"Seconds to wait for the run to finish. At most {MAX_WAIT_SECONDS:g}."),
        ]
        | None
    ) = None
    label: (
        Annotated[
            list[LabelParameter],
            Meta(
                description="A label of the run, as `key:value`. Replaces one of the workflow. Can be repeated."
            ),
        ]
        | None
    ) = None
    priority: (
        Annotated[
            int,
            Meta(
                ge=-MAX_PRIORITY,
                le=MAX_PRIORITY,
                description="Of the runs that the workflow's flow control holds back, those with the highest priority "
                "start first. Defaults to the priority in the workflow.",
            ),
        ]
        | None
    ) = None
    idempotency_key: IdempotencyKey | None = None


class RetryParameters(Parameters, frozen=True, kw_only=True):
    run: Annotated[str, Meta(description="The run's id.")]
    idempotency_key: IdempotencyKey | None = None


class RunControlRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs = services.runs
        self._queries = services.run_queries

    async def execute(self, request: Request, given: ExecuteParameters) -> Response:
        """
        Start a run of a workflow.

        The body is the run input. An empty body means `{}`. With `wait`, the response is sent when the run has finished
        or the time is up.
        """
        with begin_request_span(self._services.traces, request.scope, EXECUTE) as segment:
            response = await self._execute(request, given, segment)
            segment.note({"http.response.status_code": response.status_code})
            return response

    async def _execute(self, request: Request, given: ExecuteParameters, segment: TraceSpan) -> Response:
        content = await self._body(request)
        started = await self._runs.execute(
            given.workflow,
            given.version,
            decode_json(content) if content else {},
            correlation_id=correlation_id_of(request.scope),
            idempotency_key=given.idempotency_key,
            trace=segment.trace,
            wait_seconds=None if given.wait is None else min(given.wait, MAX_WAIT_SECONDS),
            labels=read_labels(given.label or ()),
            priority=given.priority,
        )
        segment.note({"trunkline.run_id": started.run_id})
        queries, end = self._queries, started.end
        view = await queries.get(started.run_id) if end is None else await queries.view(*end)
        asked_to_wait = given.wait is not None or not started.created
        finished = asked_to_wait and view.record.status in FINAL_RUN_STATUSES
        return _run_response(run_resource(view), started.run_id, 200 if finished else 202)

    async def cancel(self, _request: Request, given: RunParameters) -> Response:
        """Cancel a run, and cancel the tasks of agents that support it."""
        await self._runs.cancel(RunId(given.run))
        return await self._accepted(RunId(given.run))

    async def pause(self, _request: Request, given: RunParameters) -> Response:
        """Pause a run. Calls in progress finish, and no new call starts."""
        await self._runs.pause(RunId(given.run))
        return await self._accepted(RunId(given.run))

    async def resume(self, _request: Request, given: RunParameters) -> Response:
        """Resume a paused run."""
        await self._runs.resume(RunId(given.run))
        return await self._accepted(RunId(given.run))

    async def retry(self, request: Request, given: RetryParameters) -> Response:
        """Retry a finished run: start a new run that reuses the outputs of completed steps."""
        asked = convert(decode_object(await self._body(request) or b"{}"), RetryRequest)
        from_step = None if asked.from_step is msgspec.UNSET else asked.from_step
        if asked.from_start and from_step is not None:
            raise Invalid("from_start and from_step cannot be used together.", fix="Send only one of them.")
        with begin_request_span(self._services.traces, request.scope, f"{RUNS}/{{run}}/retry") as segment:
            started = await self._runs.retry(
                RunId(given.run),
                from_step=from_step,
                from_start=asked.from_start,
                run_input=asked.input,
                step_input=asked.step_input,
                correlation_id=correlation_id_of(request.scope),
                idempotency_key=given.idempotency_key,
                trace=segment.trace,
            )
            segment.note({"trunkline.run_id": started.run_id, "http.response.status_code": 202})
        return await self._accepted(started.run_id)

    async def compensate(self, _request: Request, given: RunParameters) -> Response:
        """Undo the work of a run that has failed or was cancelled, and whose work was not undone."""
        await self._services.run_compensations.start(RunId(given.run))
        return await self._accepted(RunId(given.run))

    async def reply(self, request: Request, given: StepParameters) -> Response:
        """
        Answer a waiting step: the question of an agent, or a human task.

        The answer to a step with a child run is for the step inside it that asks. If several do, the status is 409.
        A human task is answered once. If it was answered before, the status is 409, and `detail` says who.
        """
        asked = convert(decode_object(await self._body(request)), ReplyRequest)
        item = None if asked.item is msgspec.UNSET else asked.item
        asking = await self._runs.asking_step(RunId(given.run), given.step, item)
        if await self._services.human_task_answers.is_human_task(*asking):
            await self._answer_human_task(*asking, asked)
        else:
            await self._reply_to_agent(*asking, asked)
        return await self._accepted(RunId(given.run))

    async def _answer_human_task(self, run_id: RunId, step: str, asked: ReplyRequest) -> None:
        for name in ("text", "parts"):
            if getattr(asked, name) is not msgspec.UNSET:
                raise Invalid(
                    f"{name} cannot answer a human task.", fix="Send answer, data or comment instead."
                )
        await self._services.human_task_answers.answer(
            run_id,
            step,
            GivenAnswer(
                answer=None if asked.answer is msgspec.UNSET else asked.answer,
                data=asked.data,
                comment=None if asked.comment is msgspec.UNSET else asked.comment,
            ),
            by=current_actor(),
            item=None if asked.item is msgspec.UNSET else asked.item,
        )

    async def _reply_to_agent(self, run_id: RunId, step: str, asked: ReplyRequest) -> None:
        reply = {
            name: value for name, value in msgspec.structs.asdict(asked).items() if value is not msgspec.UNSET
        }
        item = reply.pop("item", None)
        for name in ("answer", "comment"):
            if name in reply:
                raise Invalid(
                    f"{name} answers only a human task, but the step {step} calls an agent.",
                    fix="Send text, data or parts instead.",
                )
        if not reply:
            raise Invalid("The reply is empty.", fix="Send at least one of text, data or parts.")
        await self._check_person(run_id, step)
        await self._runs.reply(run_id, step, ReplyMessage(**reply), item)

    async def _check_person(self, run_id: RunId, step: str) -> None:
        await self._services.human_task_answers.check_reply(run_id, step, by=current_actor())

    async def resolve(self, request: Request, given: StepParameters) -> Response:
        """Resolve a call whose outcome is unknown, or decide about a compensation that has failed."""
        asked = convert(decode_object(await self._body(request)), ResolveRequest)
        await self._check_person(RunId(given.run), given.step)
        match asked.outcome:
            case "succeeded" | "failed" | "call_again":
                await self._runs.resolve(RunId(given.run), given.step, asked.outcome, asked.output)
            case "retry" | "skip" | "give_up":
                await self._services.run_compensations.decide(RunId(given.run), given.step, asked.outcome)
        return await self._accepted(RunId(given.run))

    async def _body(self, request: Request) -> bytes:
        return await read_body(request, self._services.limits.max_body_bytes)

    async def _accepted(self, run_id: RunId) -> Response:
        return _run_response(run_resource(await self._queries.get(run_id)), run_id, 202)


def _run_response(run: RunResource, run_id: RunId, status: int) -> Response:
    return json_response(run, status, {"Location": f"{RUNS}/{run_id}"})


def begin_request_span(traces: Traces, scope: Scope, route: str) -> TraceSpan:
    """The span of a request that starts a run, as a part of the caller's trace."""
    caller = _trace_of_caller(scope["headers"])
    if not traces.are_on:
        return traces.propagate(caller)
    method = scope["method"]
    attributes = {"http.request.method": method, "http.route": route, "url.path": scope["path"]}
    return traces.begin(f"{method} {route}", "SERVER", caller, attributes)


def _trace_of_caller(headers: list[tuple[bytes, bytes]]) -> TraceContext | None:
    parent: bytes | None = None
    states: list[bytes] = []
    for name, value in headers:
        if name == RAW_TRACEPARENT:
            parent = value
        elif name == RAW_TRACESTATE:
            states.append(value)
    return None if parent is None else TraceContext.read(parent, b",".join(states) if states else None)


def run_control_operations(services: Services) -> list[Operation]:
    routes = RunControlRoutes(services)
    one = f"{RUNS}/{{run}}"
    accepted = {202: ResponseSpec("The current state of the run.", RunResource, headers=LOCATION)}
    with_body = (400, 404, 409, 413, 422)
    return [
        operation(
            f"POST {EXECUTE}", routes.execute, ExecuteParameters, name="execute_workflow", tag="runs",
            body=Body({"description": "The run input."}, required=False),
            responses={
                200: ResponseSpec("The finished run.", RunResource, headers=LOCATION),
                202: ResponseSpec("The run, which has not finished yet.", RunResource, headers=LOCATION),
            },
            problems=(400, 404, 413, 422),
        ),
        operation(
            f"POST {one}/cancel", routes.cancel, RunParameters, name="cancel_run", tag="runs",
            responses=accepted, problems=(404, 409),
        ),
        operation(
            f"POST {one}/pause", routes.pause, RunParameters, name="pause_run", tag="runs",
            responses=accepted, problems=(404, 409),
        ),
        operation(
            f"POST {one}/resume", routes.resume, RunParameters, name="resume_run", tag="runs",
            responses=accepted, problems=(404, 409),
        ),
        operation(
            f"POST {one}/compensate", routes.compensate, RunParameters, name="compensate_run", tag="runs",
            responses=accepted, problems=(404, 409),
        ),
        operation(
            f"POST {one}/retry", routes.retry, RetryParameters, name="retry_run", tag="runs",
            body=Body(RetryRequest, required=False),
            responses={202: ResponseSpec("The new run.", RunResource, headers=LOCATION)}, problems=with_body,
        ),
        operation(
            f"POST {one}/steps/{{step}}/reply", routes.reply, StepParameters, name="reply_to_step", tag="runs",
            body=Body(ReplyRequest), responses=accepted, problems=with_body,
        ),
        operation(
            f"POST {one}/steps/{{step}}/resolve", routes.resolve, StepParameters, name="resolve_step", tag="runs",
            body=Body(ResolveRequest), responses=accepted, problems=with_body,
        ),
    ]  # fmt: skip
