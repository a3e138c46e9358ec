"""
Says in words what is wrong with the history of a system that was killed and started again.

It does no I/O: it looks at what was asked for, what Trunkline says has happened (`history_reader.py` asks it), and what
the agents have noted. An empty list is the proof that nothing was lost, stuck or doubled, and that every second call
of an agent has a reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, cast

import msgspec
from tests.crash.agents import ReceivedCall
from tests.crash.client import FINAL_EVENTS, RunEvent

from trunkline.jsontypes import Json, JsonObject, decode

# How a life ended. Calls under way at a graceful stop end first, unless they take longer than they may. One that was
# paused for longer than its lease does not know that others have taken its tasks: it may be late, and call too.
Ending: TypeAlias = Literal["killed", "stopped", "abandoned", "paused"]

# Why an agent was called again for the same task.
Reason: TypeAlias = Literal["caller died", "caller paused", "lease lapsed", "no answer", "none"]

_STEP_ENDS = frozenset({"StepCompleted", "StepFailed", "StepSkipped", "StepCancelled"})


class LeaseLapse(msgspec.Struct, kw_only=True):
    """A bridge that lived, but renewed its lease too late, by the clock of the calls: others may call for it."""

    last_beat_at: float
    renewed_at: float


class RequestedRun(msgspec.Struct, kw_only=True):
    """A run that somebody asked for: `key` is in its input."""

    key: str
    # The id that the client was told; None when the process died first, and nobody asked again.
    run_id: str | None = None
    # Every way in which it may end: status and output.
    ends: Collection[tuple[str, Json]]
    # Steps that must never be called twice, whatever happens.
    at_most_once: frozenset[str] = frozenset()
    # The life in which its cancellation was acknowledged: in no later one is an agent called for it.
    cancelled_in: int | None = None


class RunHistory(msgspec.Struct, kw_only=True):
    """A run as Trunkline tells it."""

    run: JsonObject
    events: list[RunEvent]
    wire: list[JsonObject]

    @property
    def id(self) -> str:
        return str(self.run["id"])

    @property
    def parent(self) -> str | None:
        """The run that has begun it."""
        parent = self.run.get("parent")
        return str(parent["run_id"]) if isinstance(parent, dict) else None

    @property
    def key(self) -> Json:
        given = self.run["input"]
        return given.get("key") if isinstance(given, dict) else None


class SystemHistory(msgspec.Struct, kw_only=True):
    wanted: list[RequestedRun]
    runs: list[RunHistory]
    calls: list[ReceivedCall]
    # By number; the last life may still be under way.
    lives: dict[int, Ending]
    # When they were killed or paused, by the clock of the calls; where that is not known, it was in time.
    lost_at: dict[int, float] = {}
    # Of processes that were neither killed nor paused: starved, or cut off from the store.
    lapsed: dict[int, list[LeaseLapse]] = {}
    # Whoever asked for a commit may not know whether it happened, and writes again what it had to say.
    commits_in_doubt: bool = False
    without_wake_reason: float = 0
    # What still waits though every run has ended.
    waiting: dict[str, float] = {}

    @property
    def accepted(self) -> int:
        """How many runs there are that nobody but a client has begun."""
        return sum(run.parent is None for run in self.runs)


def violations(history: SystemHistory) -> list[str]:
    found: list[str] = []
    found += _lost_and_unwanted(history)
    found += _stuck(history)
    found += _children(history)
    calls: defaultdict[str, list[ReceivedCall]] = defaultdict(list)
    for call in history.calls:
        calls[call.task_id.partition("/")[0]].append(call)
    wanted = {want.key: want for want in history.wanted}
    for run in history.runs:
        own = calls.pop(run.id, [])
        found += [f"run {run.id}: {problem}" for problem in _events(run)]
        found += [f"run {run.id}: {problem}" for problem in _tasks(run)]
        found += [f"run {run.id}: {problem}" for problem in _calls(run, own, history)]
        found += [f"run {run.id}: {problem}" for problem in _unreported(run, own)]
        want = wanted.get(str(_first_of(run, history).key))
        if want is not None:
            found += [f"run {run.id}: {problem}" for problem in _never_again(own, want)]
    found += [f"an agent was called for run {run_id}, which does not exist" for run_id in calls]
    return found


def _first_of(run: RunHistory, history: SystemHistory) -> RunHistory:
    """The run that somebody asked for, above those that steps have begun."""
    above = next((other for other in history.runs if other.id == run.parent), None)
    return run if above is None else _first_of(above, history)


def _children(history: SystemHistory) -> Iterable[str]:
    """Every run that a step has begun is there once, and over."""
    begun = Counter(
        str(event.data["run_id"])
        for run in history.runs
        for event in run.events
        if event.type == "StepChildStarted"
    )
    yield from (f"run {run_id} was begun {times} times" for run_id, times in begun.items() if times > 1)
    yield from (
        f"run {run_id} was begun and is lost" for run_id in begun.keys() - {r.id for r in history.runs}
    )
    for run in history.runs:
        if run.parent is not None and run.id not in begun:
            yield f"run {run.id}: no step has begun it"
        if run.parent is not None and run.run["status"] not in FINAL_EVENTS.values():
            yield f"run {run.id}: it is {run.run['status']} though the run above it is over"


def _lost_and_unwanted(history: SystemHistory) -> Iterable[str]:
    by_key: defaultdict[Json, list[RunHistory]] = defaultdict(list)
    for run in history.runs:
        if run.parent is None:
            by_key[run.key].append(run)
    for want in history.wanted:
        runs = by_key.pop(want.key, [])
        if want.run_id is not None and want.run_id not in {run.id for run in runs}:
            yield f"run {want.run_id} was accepted for {want.key} and is lost"
        if len(runs) > 1:
            yield f"{want.key} has {len(runs)} runs instead of one"
        for run in runs:
            end = (str(run.run["status"]), run.run["output"])
            if end not in want.ends:
                yield f"run {run.id}: it is {end[0]} with output {end[1]!r}, expected one of {want.ends!r}"
    for key, runs in by_key.items():
        yield f"nobody asked for the runs of {key!r}: {[run.id for run in runs]}"


def _stuck(history: SystemHistory) -> Iterable[str]:
    if history.without_wake_reason:
        yield f"{history.without_wake_reason:g} rows have no reason to wake"
    for queue, number in history.waiting.items():
        if number:
            yield f"every run has ended, but {number:g} wait in {queue}"


def _events(run: RunHistory) -> Iterable[str]:
    seqs = [event.seq for event in run.events]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"its events are numbered {seqs}"
    finals = [event.type for event in run.events if event.type in FINAL_EVENTS]
    status = str(run.run["status"])
    if status in FINAL_EVENTS.values():
        if [FINAL_EVENTS[final] for final in finals] != [status]:
            yield f"it is {status}, but its final events are {finals}"
        elif run.events[-1].type not in FINAL_EVENTS:
            yield f"{run.events[-1].type} came after the end"
    elif finals:
        yield f"it is {status} after {finals}"
    if [event.type for event in run.events].count("RunStarted") > 1:
        yield "it started twice"
    yield from _step_events(run.events)


def _step_events(events: Sequence[RunEvent]) -> Iterable[str]:
    ended: dict[Json, str] = {}
    for event in events:
        step = event.data.get("step")
        if step is None:
            continue
        if step in ended:
            yield f"{event.type} of step {step} came after its {ended[step]}"
        if event.type in _STEP_ENDS:
            ended[step] = event.type


def _tasks(run: RunHistory) -> Iterable[str]:
    """Each start of a step has its own cause; an answered failure, a reply and nothing else makes a new task."""
    tasks: defaultdict[Json, list[Json]] = defaultdict(list)
    causes: Counter[Json] = Counter()
    renewals: Counter[Json] = Counter()
    for event in run.events:
        step = event.data.get("step")
        if event.type == "StepStarted":
            tasks[step].append(event.data["task_id"])
        elif event.type == "StepChildStarted":
            tasks[step].append(event.data["run_id"])
        elif event.type in {
            "StepRetryScheduled",
            "StepReplied",
            "StepRepairRequested",
            "StepFailedOver",
            "StepOutcomeResolved",
            "StepRoundEnded",
        }:
            causes[step] += 1
            renewals[step] += (
                event.type in {"StepReplied", "StepRepairRequested", "StepFailedOver", "StepRoundEnded"}
                or event.data.get("answered") is True
            )
    for step, ids in tasks.items():
        if len(ids) > 1 + causes[step]:
            yield f"step {step} started {len(ids)} times with {causes[step]} causes to start again"
        if len(set(ids)) > 1 + renewals[step]:
            yield f"step {step} had the tasks {sorted(map(str, set(ids)))} though its message was to stay the same"


def _calls(run: RunHistory, calls: Sequence[ReceivedCall], history: SystemHistory) -> Iterable[str]:
    started = _started(run)
    completed = {str(event.data["step"]) for event in run.events if event.type == "StepCompleted"}
    sends: defaultdict[str, list[ReceivedCall]] = defaultdict(list)
    for call in calls:
        if call.kind == "send":
            sends[call.task_id].append(call)
        elif call.task_id not in started:
            yield f"{call.agent} was asked about {call.task_id}, which no event names"
    recorded = _recorded(run.wire)
    for task_id, own in sends.items():
        if task_id not in started:
            yield f"{own[0].agent} was called with {task_id}, which no event names"
        late = sum(history.lives.get(call.life) == "paused" for call in own)
        if recorded[task_id] > started[task_id] + late and not history.commits_in_doubt:
            yield f"{recorded[task_id]} answers to {task_id} were taken"
        yield from _second_calls(own, started[task_id], history)
    for task_id in started.keys() - sends.keys():
        step = _step_of(str(task_id))
        if step in completed and step not in _with_several_agents(run) and not _was_resolved(run):
            yield f"step {step} is completed, but no agent saw {task_id}"


def _with_several_agents(run: RunHistory) -> set[str]:
    """Steps one of whose agents could not be reached, or was stopped before it was called."""
    return {str(event.data["step"]) for event in run.events if event.type in {"StepFailedOver", "StepHedged"}}


def _recorded(wire: Sequence[JsonObject]) -> Counter[str]:
    """How many exchanges of each task were kept that sent its message, apart from those that we broke off."""
    found: Counter[str] = Counter()
    for exchange in wire:
        if str(exchange.get("error")).startswith("Trunkline stopped the call before"):
            continue
        request = cast("JsonObject", exchange["request"])
        # A card is asked for without a body.
        body = cast("JsonObject", decode(str(request["body"]).encode() or b"{}"))
        if body and body.get("method", "message/send") in {"message/send", "message/stream"}:
            found[str(body.get("id", body.get("task_id")))] += 1
    return found


def _started(run: RunHistory) -> Counter[Json]:
    """How many attempts each task has made."""
    return Counter(
        event.data["task_id"] for event in run.events if event.type in {"StepStarted", "StepHedged"}
    )


def _second_calls(calls: Sequence[ReceivedCall], attempts: int, history: SystemHistory) -> Iterable[str]:
    """Calls with one task's id: each but the first needs a reason."""
    task_id = calls[0].task_id
    if len({call.message_id for call in calls}) > 1:
        yield f"{task_id} was sent with the message ids {[call.message_id for call in calls]}"
    if len({call.body for call in calls}) > 1:
        yield f"{task_id} was sent with different bodies"
    for before, after, reason in _reasons(calls, attempts, history):
        if reason == "none":
            how = history.lives.get(before.life, "not over")
            yield (
                f"{task_id} was called in life {before.life} ({how}) and again in life {after.life}"
                " without a reason"
            )


def _reasons(
    calls: Sequence[ReceivedCall], attempts: int, history: SystemHistory
) -> Iterable[tuple[ReceivedCall, ReceivedCall, Reason]]:
    """Each call for one task but the first, with the one before it, and why it was made."""
    # An attempt that got no answer is repeated as the policy says, and is counted as another attempt.
    spare = attempts - 1
    for before, after in pairwise(calls):
        reason = _reason(before, after, history)
        if reason == "none" and spare:
            spare -= 1
            reason = "no answer"
        yield before, after, reason


def _reason(before: ReceivedCall, after: ReceivedCall, history: SystemHistory) -> Reason:
    for call in (before, after):
        if history.lives.get(call.life) == "paused" and history.lost_at.get(call.life, 0) <= after.at:
            return "caller paused"
    died = history.lives.get(before.life) in {"killed", "abandoned"}
    if died and before.life != after.life and history.lost_at.get(before.life, 0) <= after.at:
        return "caller died"
    # Called before the lease was renewed, and again after it may have lapsed.
    for lapse in history.lapsed.get(before.life, ()):
        if before.at <= lapse.renewed_at and lapse.last_beat_at <= after.at:
            return "lease lapsed"
    return "none"


def second_calls(history: SystemHistory) -> Counter[Reason]:
    """How many calls were made again, by their reasons."""
    return Counter(reason for _, _, reason in _all_reasons(history))


def recoveries(history: SystemHistory) -> list[float]:
    """The seconds from each death to the call that was made again for it, in order."""
    return sorted(
        after.at - history.lost_at[before.life]
        for before, after, reason in _all_reasons(history)
        if reason == "caller died" and before.life in history.lost_at
    )


def _all_reasons(history: SystemHistory) -> Iterable[tuple[ReceivedCall, ReceivedCall, Reason]]:
    attempts: Counter[Json] = Counter()
    for run in history.runs:
        attempts += _started(run)
    sends: defaultdict[str, list[ReceivedCall]] = defaultdict(list)
    for call in history.calls:
        if call.kind == "send":
            sends[call.task_id].append(call)
    for task_id, own in sends.items():
        yield from _reasons(own, attempts[task_id], history)


def _never_again(calls: Sequence[ReceivedCall], want: RequestedRun) -> Iterable[str]:
    times = Counter(call.task_id for call in calls if call.kind == "send")
    for task_id, number in times.items():
        if number > 1 and _step_of(task_id) in want.at_most_once:
            yield f"{task_id} may be called once and was called {number} times"
    if want.cancelled_in is not None:
        for call in calls:
            if call.kind == "send" and call.life > want.cancelled_in:
                yield f"{call.task_id} was called in life {call.life}, cancelled in life {want.cancelled_in}"


def _unreported(run: RunHistory, calls: Sequence[ReceivedCall]) -> Iterable[str]:
    """An agent that works on a task when the run is cancelled is told."""
    told = {call.task_id for call in calls if call.kind == "cancel"}
    tasks: dict[str, str] = {}
    working: set[str] = set()
    for event in run.events:
        step = str(event.data.get("step"))
        match event.type:
            case "StepStarted":
                tasks[step] = str(event.data["task_id"])
            case "StepWorking":
                working.add(step)
            case "RunCancelRequested":
                for name in working:
                    if tasks[name] not in told:
                        yield f"its agent works on {tasks[name]} and was never told that it is cancelled"
            case _:
                if event.type in _STEP_ENDS | {"StepRetryScheduled", "StepWaiting"}:
                    working.discard(step)


def _step_of(task_id: str) -> str:
    return task_id.split("/")[1]


def _was_resolved(run: RunHistory) -> bool:
    return any(event.type == "StepOutcomeUnknown" for event in run.events)
