"""
A run as its events describe it: where each step stands, and one line of text per event.

Pure: events go in, a picture comes out; `cli.follow` reads the events, `live_view` draws the picture. An event
of a kind that is not known here is shown by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, cast

from trunkline.cli.rendering.times import clock_time, duration_text, parse_time

if TYPE_CHECKING:
    from trunkline.api.resources.runs import EventResource, RunResource
    from trunkline.jsontypes import Json, JsonObject

# What a picture of a step has room for, and what is remembered for it.
_SHOWN_CHARACTERS = 160
_KEPT_CHARACTERS = 4_000


@dataclass
class FollowedStep:
    """Where one step stands."""

    name: str
    agent: str = ""
    status: str = "PENDING"
    attempts: int = 0
    protocol: str = ""
    # Why it is where it is: what it waits for, or why it failed.
    reason: str = ""
    # What its agent has said last: the whole of a short text, the end of a long one.
    said: str = ""
    started_at: datetime | None = None
    attempt_started_at: datetime | None = None
    finished_at: datetime | None = None
    # Of a step with items: how many, and how many of them are over, or have failed.
    items: int = 0
    items_over: int = 0
    items_failed: int = 0

    def took(self, now: datetime) -> str:
        """Since the first attempt began; still growing while the step is not over."""
        return duration_text((self.finished_at or now) - self.started_at) if self.started_at else ""


@dataclass
class FollowedRun:
    """Where a run and its steps stand."""

    id: str
    workflow: str
    status: str = "PENDING"
    reason: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    # Steps that wait for a person.
    asking: tuple[str, ...] = ()
    steps: dict[str, FollowedStep] = field(default_factory=dict[str, FollowedStep])
    # Those under way of steps that run item by item; their steps say how many there are.
    items: dict[str, FollowedStep] = field(default_factory=dict[str, FollowedStep])

    @classmethod
    def of(cls, run: RunResource) -> FollowedRun:
        """The picture before the first event: every step still to come."""
        workflow = run["workflow"]
        return cls(
            id=run["id"],
            workflow=f"{workflow['name']} v{workflow['version']}",
            steps={
                step["name"]: FollowedStep(
                    step["name"], step["agent"] or step.get("workflow") or step["kind"]
                )
                for step in run["steps"]
            },
        )

    @property
    def waits_for_a_person(self) -> bool:
        return self.status == "WAITING"

    def took(self, now: datetime) -> str:
        return duration_text((self.finished_at or now) - self.started_at) if self.started_at else ""

    def apply(self, event: EventResource) -> str:
        """Takes the event into the picture; returns its line."""
        at = parse_time(event["at"])
        data = _object(event["data"])
        name = data.get("step")
        if isinstance(name, str):
            owner = self.steps.get(name.partition("[")[0])
            is_item = owner is not None and owner.name != name
            step = (self.items if is_item else self.steps).setdefault(name, FollowedStep(name))
            text_of = _STEP_EVENTS.get(event["type"])
            text = text_of(step, data, at) if text_of else _unknown(event)
            if is_item and owner is not None:
                self._take_item(owner, step)
            return f"{clock_time(at)} {name} {text}"
        change = _RUN_EVENTS.get(event["type"])
        text = change(self, data, at) if change else _unknown(event)
        return f"{clock_time(at)} run {text}"

    def _take_item(self, owner: FollowedStep, item: FollowedStep) -> None:
        owner.agent = item.agent or owner.agent
        owner.protocol = item.protocol or owner.protocol
        if item.finished_at is not None:
            del self.items[item.name]
            owner.items_over += 1
            owner.items_failed += item.status == "FAILED"
        if owner.finished_at is None:
            failed = f", {owner.items_failed} failed" if owner.items_failed else ""
            owner.reason = f"{owner.items_over} of {owner.items} items{failed}"


# What a step waits for, in the words of a sentence; other kinds are words already.
_AWAITED = {"auth": "authentication", "event": "an event", "outcome": "a decision", "person": "a person"}

StepEventText = Callable[[FollowedStep, "JsonObject", "datetime | None"], str]
RunEventText = Callable[[FollowedRun, "JsonObject", "datetime | None"], str]


def _started(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    step.status, step.reason, step.said = "RUNNING", "", ""
    step.attempts = _number(data.get("attempt"), step.attempts + 1)
    step.agent = _text(data.get("agent")) or step.agent
    step.started_at = step.started_at or at
    step.attempt_started_at = at
    return _with("started", _attempt(step), step.agent)


def _child_started(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    _started(step, data, at)
    workflow, run_id = _text(data.get("workflow")), _text(data.get("run_id"))
    step.reason = f"run {run_id}"
    what = f"block {step.name}" if "block" in data else f"workflow {workflow}"
    return _with("started", _attempt(step), *_round(data), what, step.reason)


def _round(data: JsonObject) -> list[str]:
    return [f"round {data['round']}"] if data.get("round") else []


def _round_ended(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:  # noqa: ARG001 - as the others
    step.status = "WAITING" if data.get("due") else "PENDING"
    return _with("ended", *_round(data), "another one follows")


def _began(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    _started(step, data, at)
    return _with("started", _attempt(step), _text(data.get("kind")))


def _fanned_out(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    step.items = _number(data.get("items"), 0)
    step.status, step.reason, step.attempts = "RUNNING", f"{step.items_over} of {step.items} items", 1
    step.started_at = step.attempt_started_at = at
    return f"has {step.items} item{'s' * (step.items != 1)}"


def _agent_sought(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "WAITING", _text(_object(data.get("waiting_for")).get("text"))
    return f"waits for an agent: {step.reason}" if data.get("is_lookup") is False else "looks for an agent"


def _agent_chosen(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    step.agent = _text(data.get("agent"))
    return f"will call {step.agent}: {_text(data.get('reason'))}"


def _output_sought(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "WAITING", _text(_object(data.get("waiting_for")).get("text"))
    return "looks for a cached output"


def _output_claimed(_step: FollowedStep, _data: JsonObject, _at: datetime | None) -> str:
    return "has no cached output"


def _from_cache(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "COMPLETED", f"from cache: run {_text(data.get('run_id'))}"
    return f"completed {step.reason}"


def _failed_over(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    agent, message = _text(data.get("agent")), _message(data)
    step.status, step.reason = "PENDING", f"{agent} has not accepted the call: {message}"
    return f"tries another agent, because {step.reason}"


def _hedged(_step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    return f"is slow, so {_text(data.get('agent'))} is also called ({_text(data.get('reason'))})"


def _hedge_lost(_step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    return f"continues without {_text(data.get('agent'))}: {_text(data.get('reason'))}"


def _hedge_won(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    step.agent = _text(data.get("agent"))
    stopped = ", ".join(map(str, _list(data.get("stopped"))))
    return f"uses the answer of {step.agent}; stops {stopped}"


def _working(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    _note_protocol(step, data)
    step.status, step.reason = "RUNNING", "in progress at the agent"
    return _with("working", _attempt(step), step.protocol)


def _said(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    news = _joined(_object(item) for item in _list(data.get("news")))
    for item in news:
        text = _text(item.get("text"))
        step.said = (step.said + text if _goes_on(item) else text)[-_KEPT_CHARACTERS:]
    step.reason = _end_of(_one_line(step.said))
    return "; ".join(map(_words, news)) or "no new message"


def _end_of(text: str) -> str:
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    # Not in the middle of a word, unless the text has only one.
    end = text[-_SHOWN_CHARACTERS:]
    return f"… {end.partition(' ')[2] or end}"


def _joined(news: Iterable[JsonObject]) -> list[JsonObject]:
    """Pieces of one text that came together are one text again."""
    joined: list[JsonObject] = []
    for item in news:
        before = joined[-1] if joined else {}
        if _goes_on(item) and before.get("artifact_id") == item.get("artifact_id"):
            text = _text(before.get("text")) + _text(item.get("text"))
            joined[-1] = {**before, "text": text, "parts": [*_parts(before), *_parts(item)]}
        else:
            joined.append(item)
    return joined


def _words(item: JsonObject) -> str:
    text = _one_line(_text(item.get("text")))
    match item.get("kind"):
        case "called_again":
            return f"is called again: {text}"
        case "artifact":
            name = _one_line(_text(item.get("name")))
            others = len(_parts(item))
            files = f"{others} non-text part{'s' * (others > 1)}" if others else ""
            line = _with("sends an artifact", name, files)
            return f"{line}: {text}" if text else line
        case _:
            return f"says: {text}"


def _parts(item: JsonObject) -> list[Json]:
    parts = item.get("parts")
    return parts if isinstance(parts, list) else []


def _goes_on(item: JsonObject) -> bool:
    return item.get("kind") == "artifact" and item.get("append") is True


def _one_line(text: str) -> str:
    """What agents write goes to a terminal: no line ends, and nothing that would steer it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _completed(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    _note_protocol(step, data)
    warnings = [str(warning) for warning in _list(data.get("warnings"))]
    step.status, step.reason, step.finished_at = "COMPLETED", "; ".join(warnings), at
    line = _with("completed", _attempt(step), _attempt_took(step, at), step.protocol)
    return f"{line}, warning: {step.reason}" if warnings else line


def _kept(step: FollowedStep, _data: JsonObject, at: datetime | None) -> str:
    step.status, step.reason, step.finished_at = "COMPLETED", "kept from the earlier run", at
    return "completed (kept from the earlier run)"


def _input_given(_step: FollowedStep, _data: JsonObject, _at: datetime | None) -> str:
    return "uses the input of the retry"


def _retry_scheduled(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    _note_protocol(step, data)
    message = _message(data)
    due = clock_time(parse_time(data.get("due")))
    step.status, step.reason = "WAITING", f"retries at {due}: {message}"
    return f"{_with('retries', f'at {due}', _attempt(step), _attempt_took(step, at))}: {message}"


def _requeued(step: FollowedStep, _data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "PENDING", "waiting for its next attempt"
    return "queued for its next attempt"


def _failed(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    _note_protocol(step, data)
    step.status, step.reason, step.finished_at = "FAILED", _message(data), at
    goes_on = "the run continues" if data.get("handled") else ""
    return (
        f"{_with('failed', _attempt(step), _attempt_took(step, at), step.protocol, goes_on)}: {step.reason}"
    )


def _skipped(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    step.status, step.reason, step.finished_at = "SKIPPED", _text(data.get("reason")), at
    return _with("skipped", step.reason)


def _waiting(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    _note_protocol(step, data)
    waiting_for = _object(data.get("waiting_for"))
    step.status, step.reason = "WAITING", _text(waiting_for.get("text"))
    kind = _text(waiting_for.get("kind")) or "input"
    return f"waits for {_AWAITED.get(kind, kind)}: {step.reason}"


def _event_taken(_step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    return f"received the event {_text(data.get('event_id'))}"


def _answered(_step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    by, answer = _text(data.get("by")), _text(data.get("answer"))
    return _with(f"was answered by {by}" if by else "was answered by a person", answer)


def _escalated(_step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    return f"was escalated to {', '.join(map(str, _list(data.get('to'))))}"


def _inner_run_continued(step: FollowedStep, _data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "RUNNING", ""
    return "continued"


def _claimed(_step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    return f"was claimed by {data.get('by')}"


def _released(_step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    return f"was released by {data.get('by')}"


def _replied(step: FollowedStep, _data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "RUNNING", ""
    return "received its reply"


def _repair_requested(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    _note_protocol(step, data)
    errors = "; ".join(map(str, _list(data.get("errors"))))
    step.status, step.reason = "PENDING", f"asked to correct its output: {errors}"
    return f"is asked to correct its output (repair {_number(data.get('repair'), 1)}): {errors}"


def _outcome_unknown(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "OUTCOME_UNKNOWN", _message(data)
    return f"{_with('has an unknown outcome', _attempt(step))}: {step.reason}"


def _outcome_resolved(step: FollowedStep, _data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "PENDING", ""
    return "is called again after a decision by a person"


def _compensation_failed(step: FollowedStep, data: JsonObject, _at: datetime | None) -> str:
    _note_protocol(step, data)
    step.status, step.reason = "WAITING", _message(data)
    return f"failed, and a person decides how the run continues: {step.reason}"


def _compensation_retried(step: FollowedStep, _data: JsonObject, _at: datetime | None) -> str:
    step.status, step.reason = "PENDING", ""
    return "is tried again after a decision by a person"


def _cancelled(step: FollowedStep, data: JsonObject, at: datetime | None) -> str:
    step.status, step.reason, step.finished_at = "CANCELLED", _text(data.get("reason")), at
    return _with("cancelled", step.reason)


def _run_started(run: FollowedRun, _data: JsonObject, at: datetime | None) -> str:
    run.status, run.started_at = "RUNNING", at
    return _with("started", run.workflow, run.id)


def _run_paused(run: FollowedRun, _data: JsonObject, _at: datetime | None) -> str:
    run.status = "PAUSED"
    return "paused"


def _run_continued(run: FollowedRun, _data: JsonObject, _at: datetime | None) -> str:
    run.status, run.asking = "RUNNING", ()
    return "continues"


def _run_cancel_requested(run: FollowedRun, _data: JsonObject, _at: datetime | None) -> str:
    run.reason = "being cancelled"
    return "is being cancelled"


def _run_waiting(run: FollowedRun, data: JsonObject, _at: datetime | None) -> str:
    run.status = "WAITING"
    run.asking = tuple(str(step) for step in _list(data.get("steps")))
    return _with("waits for a person", ", ".join(run.asking))


def _run_ended(status: str) -> RunEventText:
    def text_of(run: FollowedRun, data: JsonObject, at: datetime | None) -> str:
        run.status, run.finished_at, run.reason = status, at, _message(data)
        took = duration_text(at - run.started_at) if at and run.started_at else ""
        line = _with(status.lower(), took)
        return f"{line}: {run.reason}" if run.reason else line

    return text_of


def _run_compensating(run: FollowedRun, data: JsonObject, _at: datetime | None) -> str:
    run.status, run.asking, run.finished_at = "COMPENSATING", (), None
    count = _number(data.get("steps"), 0)
    failure = _object(data.get("failure"))
    run.reason = _text(failure.get("message"))
    return f"undoes its work ({count} {'compensation' if count == 1 else 'compensations'}): {run.reason}"


def _run_compensated(run: FollowedRun, data: JsonObject, _at: datetime | None) -> str:
    run.asking = ()
    return "gave up undoing its work" if data.get("status") == "FAILED" else "has undone its work"


_STEP_EVENTS: dict[str, StepEventText] = {
    "StepStarted": _started,
    "StepAgentSought": _agent_sought,
    "StepAgentChosen": _agent_chosen,
    "StepOutputSought": _output_sought,
    "StepOutputClaimed": _output_claimed,
    "StepFromCache": _from_cache,
    "StepFailedOver": _failed_over,
    "StepHedged": _hedged,
    "StepHedgeLost": _hedge_lost,
    "StepHedgeWon": _hedge_won,
    "StepChildStarted": _child_started,
    "StepRoundEnded": _round_ended,
    "StepBegan": _began,
    "StepFannedOut": _fanned_out,
    "StepWorking": _working,
    "StepProgress": _said,
    "StepCompleted": _completed,
    "StepKept": _kept,
    "StepInputGiven": _input_given,
    "StepRetryScheduled": _retry_scheduled,
    "StepRequeued": _requeued,
    "StepFailed": _failed,
    "StepSkipped": _skipped,
    "StepWaiting": _waiting,
    "StepEventTaken": _event_taken,
    "StepAnswered": _answered,
    "StepEscalated": _escalated,
    "StepContinued": _inner_run_continued,
    "StepClaimed": _claimed,
    "StepReleased": _released,
    "StepReplied": _replied,
    "StepRepairRequested": _repair_requested,
    "StepOutcomeUnknown": _outcome_unknown,
    "StepOutcomeResolved": _outcome_resolved,
    "StepCompensationFailed": _compensation_failed,
    "StepCompensationRetried": _compensation_retried,
    "StepCancelled": _cancelled,
}

_RUN_EVENTS: dict[str, RunEventText] = {
    "RunStarted": _run_started,
    "RunPaused": _run_paused,
    "RunResumed": _run_continued,
    "RunContinued": _run_continued,
    "RunCancelRequested": _run_cancel_requested,
    "RunCompensating": _run_compensating,
    "RunCompensated": _run_compensated,
    "RunWaiting": _run_waiting,
    "RunCompleted": _run_ended("COMPLETED"),
    "RunFailed": _run_ended("FAILED"),
    "RunCancelled": _run_ended("CANCELLED"),
}

KNOWN_EVENTS = _STEP_EVENTS.keys() | _RUN_EVENTS.keys()


def _unknown(event: EventResource) -> str:
    return f"[{event['type']}]"


def _with(verb: str, *details: str) -> str:
    given = ", ".join(detail for detail in details if detail)
    return f"{verb} ({given})" if given else verb


def _attempt(step: FollowedStep) -> str:
    return f"attempt {step.attempts}" if step.attempts else ""


def _attempt_took(step: FollowedStep, at: datetime | None) -> str:
    return duration_text(at - step.attempt_started_at) if at and step.attempt_started_at else ""


def _note_protocol(step: FollowedStep, data: JsonObject) -> None:
    step.protocol = _text(data.get("protocol")) or step.protocol


def _message(data: JsonObject) -> str:
    return _text(_object(data.get("error")).get("message"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _list(value: object) -> Iterable[object]:
    return cast("list[object]", value) if isinstance(value, list) else ()
