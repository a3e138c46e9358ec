"""
The log of a run, line by line, in the order in which it happened: its events, the progress that its agents reported,
and every exchange with them.

Made from what is stored (docs/adr/0021): the same lines whichever process is asked, for as long as the run is kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.services.runs.stored_exchanges import StoredExchange, decode_exchange
from trunkline.stores.base import EventRecord, Store

Level = Literal["info", "warning", "error"]
Source = Literal["run", "agent", "wire"]

_PAGE = 500
_LEVELS: dict[str, Level] = {
    "StepFailed": "error",
    "RunFailed": "error",
    "StepOutcomeUnknown": "error",
    "StepRetryScheduled": "warning",
    "StepCancelled": "warning",
    "RunCancelled": "warning",
}
_FAILED_FROM = 400
# How an event reads; what is in braces is in its data.
_TEXTS: dict[str, str] = {
    "RunStarted": "The run started.",
    "StepKept": "The output was taken from the previous run.",
    "StepStarted": "Attempt {attempt} started: calling {agent}.",
    "StepChildStarted": "Run {run_id} of workflow {workflow} started.",
    "StepFannedOut": "Processing {items} items.",
    "StepWorking": "The agent accepted the task as {remote_task_id} and is polled for the result.",
    "StepCompleted": "The step completed.",
    "StepRetryScheduled": "The next attempt starts at {due}.",
    "StepRequeued": "The step is queued.",
    "StepFailed": "The step failed.",
    "StepSkipped": "The step was skipped: {reason}",
    "StepWaiting": "The step is waiting.",
    "StepAnswered": "A person answered the task.",
    "StepEscalated": "The task was escalated: it was not answered in time.",
    "StepContinued": "The child run of the step continues.",
    "StepClaimed": "{by} claimed the task.",
    "StepReleased": "{by} released the task.",
    "StepReplied": "A person replied.",
    "StepRepairRequested": "The agent was asked to correct its output, which does not match the schema.",
    "StepOutcomeUnknown": "The outcome of the call is unknown.",
    "StepOutcomeResolved": "A person decided to call the agent again.",
    "StepCancelled": "The step was cancelled: {reason}",
    "RunPaused": "The run was paused.",
    "RunResumed": "The run was resumed.",
    "RunCancelRequested": "Cancellation of the run was requested.",
    "RunWaiting": "The run is waiting for a person.",
    "RunContinued": "The run continues, because a person answered.",
    "RunCompleted": "The run completed.",
    "RunFailed": "The run failed.",
    "RunCancelled": "The run was cancelled.",
}


class LogPosition(NamedTuple):
    """How far a client has read: the last event, and the last exchange."""

    event: int = 0
    exchange: int = 0


class RunLogLine(msgspec.Struct, frozen=True, kw_only=True):
    at: Instant
    level: Level
    source: Source
    # The type of an event, or the kind of an exchange.
    event: str
    step: str | None
    attempt: int | None
    text: str
    # Where to go on behind this line.
    position: LogPosition


class LogFilter(NamedTuple):
    """Lines of one step, or of one attempt of it."""

    step: str | None = None
    attempt: int | None = None


async def log_lines(
    store: Store, run_id: RunId, after: LogPosition, wanted: LogFilter
) -> AsyncGenerator[RunLogLine]:
    """The lines after a position, for as long as the caller iterates."""
    position = after
    async with (
        aclosing(_events(store, run_id, after.event, wanted)) as events,
        aclosing(_exchanges(store, run_id, after.exchange, wanted)) as exchanges,
    ):
        event, exchange = await _next(events), await _next(exchanges)
        while event is not None or exchange is not None:
            if exchange is None or (event is not None and event.at <= exchange.at):
                assert event is not None  # noqa: S101 - one of them is there
                line, event = event, await _next(events)
                position = position._replace(event=line.position.event)
            else:
                line, exchange = exchange, await _next(exchanges)
                position = position._replace(exchange=line.position.exchange)
            yield msgspec.structs.replace(line, position=position)


async def _next(lines: AsyncIterator[RunLogLine]) -> RunLogLine | None:
    return await anext(lines, None)


async def _events(store: Store, run_id: RunId, after: int, wanted: LogFilter) -> AsyncGenerator[RunLogLine]:
    while page := await store.runs.events(run_id, after=after, limit=_PAGE, step=wanted.step):
        for record in page:
            line = _event_line(record)
            if wanted.attempt is None or line.attempt in (None, wanted.attempt):
                yield line
        after = page[-1].seq


async def _exchanges(
    store: Store, run_id: RunId, after: int, wanted: LogFilter
) -> AsyncGenerator[RunLogLine]:
    while page := await store.exchanges.page(
        run_id, after=after, limit=_PAGE, step=wanted.step, attempt=wanted.attempt
    ):
        for row, record in page:
            yield _exchange_line(row, decode_exchange(record))
        after = page[-1][0]


def _event_line(record: EventRecord) -> RunLogLine:
    data = decode(record.data)
    assert isinstance(data, dict)  # noqa: S101 - encode_event writes objects alone
    step, attempt = data.get("step"), data.get("attempt")
    said = record.type == "StepProgress"
    return RunLogLine(
        at=record.at,
        level=_LEVELS.get(record.type, "warning" if data.get("warnings") else "info"),
        source="agent" if said else "run",
        event=record.type,
        step=step if isinstance(step, str) else None,
        attempt=attempt if isinstance(attempt, int) else None,
        text="\n".join(_news(data.get("news"))) if said else _event_text(record.type, data),
        position=LogPosition(event=record.seq),
    )


def _event_text(type_: str, data: JsonObject) -> str:
    parts = [_TEXTS.get(type_, type_).format_map(_EventFields(data))]
    error, waiting = data.get("error"), data.get("waiting_for")
    if isinstance(error, dict):
        parts.append(f"{error.get('message', '')} ({error.get('code', '')})")
    if isinstance(waiting, dict):
        parts.append(str(waiting.get("text", "")))
    warnings = data.get("warnings")
    if isinstance(warnings, list):
        parts += [str(warning) for warning in warnings]
    return "\n".join(part for part in parts if part)


class _EventFields(dict[str, Json]):
    """What an event leaves out of its data is its default, which says nothing."""

    def __missing__(self, key: str) -> str:
        return "…"


def _news(news: Json) -> list[str]:
    lines: list[str] = []
    for each in news if isinstance(news, list) else []:
        if isinstance(each, dict):
            name = each.get("name") or each.get("artifact_id")
            text = str(each.get("text") or "")
            lines.append(f"{name}: {text}" if each.get("kind") == "artifact" and name else text)
    return [line for line in lines if line] or ["The agent is working."]


def _exchange_line(row: int, exchange: StoredExchange) -> RunLogLine:
    response = exchange.response
    if exchange.error is not None:
        outcome = exchange.error
    elif response is None:
        outcome = "no answer"
    else:
        outcome = f"HTTP {response.status}"
    failed = exchange.error is not None or response is None or response.status >= _FAILED_FROM
    first = (
        f"{exchange.request.method} {exchange.request.url}: {outcome}, after {exchange.duration_ms:.0f} ms"
    )
    return RunLogLine(
        at=_end_of(exchange),
        level="warning" if failed else "info",
        source="wire",
        event=exchange.kind,
        step=exchange.step,
        attempt=exchange.attempt,
        text="\n".join([first, *exchange.notes]),
        position=LogPosition(exchange=row),
    )


def _end_of(exchange: StoredExchange) -> Instant:
    begun = datetime.fromisoformat(exchange.started_at)
    return Instant(round(begun.timestamp() * 1_000_000 + exchange.duration_ms * 1_000))
