"""
What has happened to a run: the facts that change its state, and the history that people read.

A `Payload` takes part in the state but not in the history, which names its size only: the whole of it is in the step.
"""

from __future__ import annotations

import msgspec

from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import encode
from trunkline.machine.candidates import ConsideredAgent
from trunkline.machine.state import (
    AgentChoice,
    CompensationStatus,
    EndStatus,
    Failure,
    HumanTask,
    ParentStep,
    WaitingFor,
)
from trunkline.messages import Progress, StepError
from trunkline.workflow import StepKind


class Payload:
    """JSON text on its way into the state."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Payload) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class RunEventBase(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has happened to the run as a whole."""


class StepEventBase(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has happened to one step. `step` comes first in the stored JSON: see `step_event_prefix`."""

    step: str


class RunStarted(RunEventBase, frozen=True):
    # A client that reads only the history can find the run in the logs of other systems.
    correlation_id: str = ""


class StepKept(StepEventBase, frozen=True):
    """A retried run takes this output over from the run before."""

    output: Payload


class StepInputGiven(StepEventBase, frozen=True):
    """The retry request provides the step's input; the workflow's expression is not evaluated."""

    input: Payload


class StepStarted(StepEventBase, frozen=True):
    attempt: int
    task_id: str
    agent: str
    input: Payload


class StepAgentSought(StepEventBase, frozen=True):
    """The step looks for an agent, or waits until one may be called."""

    attempt: int
    waiting_for: WaitingFor
    # Whether candidates are looked up; if not, that is done when the wait ends.
    is_lookup: bool = True


class StepAgentChosen(StepEventBase, frozen=True):
    """Which agent the step calls, and why. `candidates`: the best first."""

    agent: str
    reason: str
    candidates: tuple[ConsideredAgent, ...] = ()
    # How many there were in addition.
    others: int = 0
    repeatable: bool = False

    @property
    def choice(self) -> AgentChoice:
        return AgentChoice(self.agent, self.reason, self.candidates, self.others)


class StepOutputSought(StepEventBase, frozen=True):
    """The step looks for its output in the cache, or waits for an equal step that is running."""

    waiting_for: WaitingFor
    # Of the key.
    digest: str
    number: int


class StepOutputClaimed(StepEventBase, frozen=True):
    """The cache has no output for the step: it does its work. `leads`: equal steps wait for it."""

    leads: bool


class StepFromCache(StepEventBase, frozen=True):
    """The step has completed with the output of an equal step."""

    output: Payload
    run_id: str
    origin: str
    # When that step had completed.
    at: Instant


class StepFailedOver(StepEventBase, frozen=True):
    """The agent has not accepted the call: another one is tried, in the same attempt."""

    attempt: int
    agent: str
    error: StepError


class StepHedged(StepEventBase, frozen=True):
    """The call is slow: another agent is called with the same work."""

    attempt: int
    agent: str
    task_id: str
    reason: str
    candidates: tuple[ConsideredAgent, ...] = ()
    others: int = 0


class StepHedgeLost(StepEventBase, frozen=True):
    """One of several calls of the step has ended without a result; the others go on."""

    attempt: int
    agent: str
    reason: str


class StepHedgeWon(StepEventBase, frozen=True):
    """One of several calls of the step has brought its result; the others are stopped."""

    attempt: int
    agent: str
    stopped: tuple[str, ...]


class StepBegan(StepEventBase, frozen=True):
    """A step with an action has begun. It calls no agent."""

    attempt: int
    kind: StepKind
    input: Payload


class StepChildStarted(StepEventBase, frozen=True):
    """The step has begun a run of another workflow, or of the steps inside it."""

    attempt: int
    run_id: str
    workflow: str
    input: Payload
    # As it was asked for; left out: the latest.
    version: int | None = None
    # The block of the workflow that it is a run of.
    block: str | None = None
    # Of a step that is repeated, from 1.
    round: int = 0


class StepRoundEnded(StepEventBase, frozen=True):
    """A round of the step has ended, and another one follows."""

    round: int
    run_id: str
    # Of the next round.
    input: Payload
    # When that begins; left out: as soon as it may.
    due: Instant | None = None


class StepFannedOut(StepEventBase, frozen=True):
    """The step's items are known: one call for each."""

    items: int
    input: Payload


class StepWorking(StepEventBase, frozen=True):
    """The agent has taken the task and will be asked again."""

    attempt: int
    remote_task_id: str
    protocol: str | None = None
    context_id: str | None = None


class StepProgress(StepEventBase, frozen=True):
    """What the agent has said meanwhile."""

    attempt: int
    news: tuple[Progress, ...]


class StepCompleted(StepEventBase, frozen=True):
    attempt: int
    output: Payload
    protocol: str | None = None
    context_id: str | None = None
    remote_task_id: str | None = None
    warnings: tuple[str, ...] = ()


class StepRetryScheduled(StepEventBase, frozen=True):
    attempt: int
    due: Instant
    error: StepError
    # An answered failure gives the next attempt a new task id.
    answered: bool
    protocol: str | None = None
    context_id: str | None = None


class StepRequeued(StepEventBase, frozen=True):
    """Its time to try again has come, but nothing may start at the moment."""


class StepFailed(StepEventBase, frozen=True):
    attempt: int
    error: StepError
    # The workflow goes on all the same (`on_error`).
    handled: bool = False
    protocol: str | None = None
    context_id: str | None = None


class StepSkipped(StepEventBase, frozen=True):
    reason: str


class StepWaiting(StepEventBase, frozen=True):
    """The step waits for what `waiting_for` says: a person, a time, or an event."""

    attempt: int
    waiting_for: WaitingFor
    protocol: str | None = None
    context_id: str | None = None
    remote_task_id: str | None = None


class StepEventTaken(StepEventBase, frozen=True):
    """One of several events that the step waits for has arrived."""

    attempt: int
    event_id: str
    event: Payload


class StepAnswered(StepEventBase, frozen=True):
    """A person has answered the step's human task."""

    attempt: int
    by: str | None
    answer: str | None
    # All of it, as the step's output has it.
    reply: Payload


class StepEscalated(StepEventBase, frozen=True):
    """The step's human task was not answered in time and has more assignees now."""

    attempt: int
    to: tuple[str, ...]


class StepContinued(StepEventBase, frozen=True):
    """The child run of the step no longer waits for people alone."""


class StepClaimed(StepEventBase, frozen=True):
    """A person works on what the step asks people."""

    attempt: int
    by: str


class StepReleased(StepEventBase, frozen=True):
    """The person who has claimed it no longer works on it."""

    attempt: int
    by: str


class StepReplied(StepEventBase, frozen=True):
    reply: Payload


class StepRepairRequested(StepEventBase, frozen=True):
    """The output does not match the step's schema: the same agent is asked to correct it, in the same conversation."""

    attempt: int
    # How often it has been asked, this time included.
    repair: int
    errors: tuple[str, ...]
    # The request, in the form of a reply.
    reply: Payload
    protocol: str | None = None
    context_id: str | None = None


class StepOutcomeUnknown(StepEventBase, frozen=True):
    attempt: int
    error: StepError


class StepOutcomeResolved(StepEventBase, frozen=True):
    """A person has said that the agent is to be called again."""


class StepCancelled(StepEventBase, frozen=True):
    reason: str


class StepCompensationFailed(StepEventBase, frozen=True):
    """A compensation has failed for good: a person decides how the run goes on."""

    attempt: int
    error: StepError
    protocol: str | None = None
    context_id: str | None = None


class StepCompensationRetried(StepEventBase, frozen=True):
    """A person has said that the compensation is to be tried again."""


class RunPaused(RunEventBase, frozen=True):
    pass


class RunResumed(RunEventBase, frozen=True):
    pass


class RunCancelRequested(RunEventBase, frozen=True):
    # Why a run that has not started never will.
    reason: str | None = None


class RunWaiting(RunEventBase, frozen=True):
    """Nothing runs, is queued or is timed: the run waits for a person."""

    steps: tuple[str, ...]


class RunContinued(RunEventBase, frozen=True):
    """A person has answered: the run goes on."""


class RunCompleted(RunEventBase, frozen=True):
    output: Payload


class RunFailed(RunEventBase, frozen=True):
    error: StepError


class RunCancelled(RunEventBase, frozen=True):
    pass


class RunCompensating(RunEventBase, frozen=True):
    """The work of the run is undone, step by step, before it ends."""

    failure: Failure
    # How many compensations there are.
    steps: int
    # What the run is afterwards.
    ends: EndStatus
    error: StepError | None = None
    # The run had ended before.
    reopened: bool = False
    asked_by: ParentStep | None = None


class RunCompensated(RunEventBase, frozen=True):
    """Everything is undone; or a person has given up, and the rest is not."""

    status: CompensationStatus


AnyRunEvent = (
    RunStarted
    | RunPaused
    | RunResumed
    | RunCancelRequested
    | RunWaiting
    | RunContinued
    | RunCompleted
    | RunFailed
    | RunCancelled
    | RunCompensating
    | RunCompensated
)

# What concerns the choice of an agent.
RouteEvent = StepAgentSought | StepAgentChosen | StepFailedOver | StepHedged | StepHedgeLost | StepHedgeWon

# What concerns the cache of outputs.
CacheEvent = StepOutputSought | StepOutputClaimed | StepFromCache

# What happens to a step otherwise.
WorkEvent = (
    StepKept
    | StepInputGiven
    | StepStarted
    | StepBegan
    | StepChildStarted
    | StepRoundEnded
    | StepFannedOut
    | StepWorking
    | StepProgress
    | StepCompleted
    | StepRetryScheduled
    | StepRequeued
    | StepFailed
    | StepSkipped
    | StepWaiting
    | StepEventTaken
    | StepAnswered
    | StepEscalated
    | StepContinued
    | StepClaimed
    | StepReleased
    | StepReplied
    | StepRepairRequested
    | StepOutcomeUnknown
    | StepOutcomeResolved
    | StepCancelled
    | StepCompensationFailed
    | StepCompensationRetried
)

AnyStepEvent = WorkEvent | RouteEvent | CacheEvent

Event = AnyRunEvent | AnyStepEvent


def _payload_size(value: object) -> object:
    if isinstance(value, Payload):
        return {"bytes": len(value.text)}
    raise NotImplementedError(f"An event cannot hold {type(value).__name__}")


def waited_events(waiting: WaitingFor) -> dict[str, object]:
    """For which events a step waits, in the words of the workflow language."""
    if waiting.signal:
        return {"signal": waiting.events[0]}
    shown: dict[str, object] = (
        {"event": waiting.events[0]} if len(waiting.events) == 1 else {"any": waiting.events}
    )
    return shown if waiting.key is None else {**shown, "key": waiting.key}


def shown_human_task(task: HumanTask) -> dict[str, object]:
    """What a step has given to people, in the words of the workflow language."""
    people: dict[str, object] = {
        "assignees": task.assignees,
        "only_assignees": task.only_assignees,
        "due": None if task.due is None else rfc3339(task.due),
        "claimed_by": task.claimed_by,
        "claimed_at": None if task.claimed_at is None else rfc3339(task.claimed_at),
    }
    if not task.title:
        # An agent's question: the agent says what it asks, and how.
        return people
    return {
        "title": task.title,
        "options": task.options,
        "required": task.required,
        "exclude_starter": task.exclude_starter,
        "answers": task.answers,
        **people,
    }


def shown_inner_questions(waiting: WaitingFor) -> dict[str, object]:
    """Where the questions are that a step with a child run waits for; nothing for other steps."""
    if not waiting.inside:
        return {}
    questions = [msgspec.to_builtins(question) for question in waiting.inside]
    return {"questions": questions, "more_questions": waiting.more_inside}


def _shown_wait(waiting: WaitingFor) -> dict[str, object]:
    shown: dict[str, object] = {"kind": waiting.kind, "text": waiting.text}
    if waiting.until is not None:
        shown["until"] = rfc3339(waiting.until)
    if waiting.kind == "event":
        shown |= waited_events(waiting)
    if waiting.human_task is not None:
        shown |= {name: value for name, value in shown_human_task(waiting.human_task).items() if value}
    if waiting.data is not None:
        shown["data"] = Payload(encode(waiting.data))
    return shown | shown_inner_questions(waiting)


_encoder = msgspec.json.Encoder(enc_hook=_payload_size)


def step_event_prefix(step: str) -> bytes:
    """How the data of each event of this step begins, and of no other: a store finds them without reading JSON."""
    return b'{"step":' + encode(step)


def encode_event(event: Event) -> bytes:
    """The event's data as the history shows it: times as every door shows them."""
    if isinstance(event, StepRetryScheduled | StepRoundEnded) and event.due is not None:
        shown = {name: value for name, value in msgspec.structs.asdict(event).items() if value is not None}
        return _encoder.encode({**shown, "due": rfc3339(event.due)})
    if isinstance(event, StepFromCache):
        return _encoder.encode({**msgspec.structs.asdict(event), "at": rfc3339(event.at)})
    if isinstance(event, StepWaiting | StepAgentSought | StepOutputSought):
        shown = {name: value for name, value in msgspec.structs.asdict(event).items() if value is not None}
        return _encoder.encode({**shown, "waiting_for": _shown_wait(event.waiting_for)})
    return _encoder.encode(event)
