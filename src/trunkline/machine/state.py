"""
The state of a run, as the machine sees it and as the stores keep it.

A `RunState` is owned by its holder: `evolve` changes it in place. It is worth only as much as the version it
was read at; the commit compares, and a holder that lost drops what it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, assert_never

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import Json
from trunkline.machine.candidates import ConsideredAgent
from trunkline.messages import StepError, TraceContext
from trunkline.workflow import CompiledWorkflow

RunStatus = Literal[
    "PENDING", "RUNNING", "WAITING", "PAUSED", "COMPENSATING", "COMPLETED", "FAILED", "CANCELLED"
]
StepStatus = Literal[
    "PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED", "OUTCOME_UNKNOWN"
]
RUN_STATUSES: tuple[RunStatus, ...] = (
    "PENDING", "RUNNING", "WAITING", "PAUSED", "COMPENSATING", "COMPLETED", "FAILED", "CANCELLED",
)  # fmt: skip
# A run as its A2A caller sees it; `rejected` is what an agent behind it may say.
TaskState = Literal[
    "submitted", "working", "input-required", "auth-required", "completed", "canceled", "failed", "rejected"
]
EndStatus = Literal["COMPLETED", "FAILED", "CANCELLED"]
FINAL_RUN_STATUSES = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
FINAL_STEP_STATUSES = frozenset({"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"})


# `agent`: for the choice of an agent, or for one that may be called. `cache`: for the output of an equal step.
# `compensation`: a compensation has failed, and a person decides.
WaitingKind = Literal[
    "input", "auth", "retry", "remote", "outcome", "time", "event", "person", "agent", "cache", "compensation"
]
# What the world brings by itself: a run that waits for nothing else goes on without a person.
_TIME_OR_EVENT = frozenset({"time", "event"})


class HumanTask(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """
    What a step gives to people, without the text and the time until which the step waits.

    An agent's question has one if its step has rules for questions, or if someone has claimed it.
    """

    # Empty: an agent's question.
    title: str = ""
    # What can be answered; empty: any text.
    options: tuple[str, ...] = ()
    # People and groups.
    assignees: tuple[str, ...] = ()
    # Afterwards, it is overdue.
    due: Instant | None = None
    required: int = 1
    exclude_starter: bool = False
    only_assignees: bool = False
    # The person who works on it. Until it is released, other people cannot answer it.
    claimed_by: str | None = None
    claimed_at: Instant | None = None
    # When which assignees are added, in order; and how many of these times have passed.
    escalations: tuple[tuple[Instant, tuple[str, ...]], ...] = ()
    escalated: int = 0
    # The answers so far if it requires more than one, in the form of the step's output.
    answers: tuple[Json, ...] = ()

    @property
    def next_escalation(self) -> tuple[Instant, tuple[str, ...]] | None:
        return self.escalations[self.escalated] if self.escalated < len(self.escalations) else None

    @property
    def answered_by(self) -> tuple[Json, ...]:
        return tuple(answer.get("by") for answer in self.answers if isinstance(answer, dict))

    @property
    def listed_for(self) -> tuple[str, ...]:
        """In whose inbox it is: of the person who has claimed it, or else of its assignees."""
        return self.assignees if self.claimed_by is None else (self.claimed_by,)

    def with_answer(self, answer: Json) -> HumanTask:
        """An answer ends the claim."""
        return self.claimed(None, None, answers=(*self.answers, answer))

    def claimed(self, by: str | None, at: Instant | None, **changes: object) -> HumanTask:
        return msgspec.structs.replace(self, claimed_by=by, claimed_at=at, **changes)

    def with_assignees(self, added: tuple[str, ...]) -> HumanTask:
        """After the next escalation."""
        assignees = tuple(dict.fromkeys((*self.assignees, *added)))
        return msgspec.structs.replace(self, assignees=assignees, escalated=self.escalated + 1)

    def is_decided_by(self, answer: str | None, count: int) -> bool:
        """Whether this answer, the `count`th, decides the task."""
        return count >= self.required or bool(self.options and answer != self.options[0])


class InnerQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a step of a block or of a child workflow, or a step further inside, waits for a person for."""

    run_id: RunId
    step: str
    # As the inbox names it.
    item: str
    kind: WaitingKind
    text: str


class WaitingFor(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a step that is not done waits for."""

    kind: WaitingKind
    text: str
    until: Instant | None = None
    # Of a question: what the agent sent with it that is not text. Of a wait for several events: those it has received.
    data: Json = None
    # When the wait for a person, or for the world, began.
    since: Instant | None = None
    # Of a wait for events: their types, or the name of a signal, and the key that they must have.
    events: tuple[str, ...] = ()
    signal: bool = False
    key: str | None = None
    human_task: HumanTask | None = None
    # Of a step whose child run waits for people: what it waits for, the first of which is shown as the step's own.
    inside: tuple[InnerQuestion, ...] = ()
    # There are more of them than these.
    more_inside: bool = False

    @property
    def is_of_an_agent(self) -> bool:
        """An agent has asked, of this step or of one inside it."""
        return self.kind in {"input", "auth"}

    @property
    def is_question(self) -> bool:
        return self.is_of_an_agent and not self.inside

    @property
    def is_for_time_or_event(self) -> bool:
        """For a time or an event: the run goes on without a person, and nothing is done for it meanwhile."""
        return self.kind in _TIME_OR_EVENT

    @property
    def is_for_a_person(self) -> bool:
        return not self.inside and (self.is_of_an_agent or self.kind in {"outcome", "person", "compensation"})


class HedgeCall(msgspec.Struct, frozen=True):
    """A call that is made in addition to a slow one."""

    agent: str
    # As in `AgentRoute`.
    number: int


class AgentChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a step calls an agent, as it is shown."""

    agent: str
    reason: str
    # The best first.
    candidates: tuple[ConsideredAgent, ...] = ()
    # How many there were in addition.
    others: int = 0


class AgentRoute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of a step that finds its agent when it begins: which one that is."""

    # Empty: none has been chosen.
    agent: str = ""
    # Of the present call among those of the step: a part of the id of its task.
    number: int = 0
    # How many numbers were given.
    numbers: int = 0
    # Whether the next call goes to the same agent: it may have the task, or a conversation goes on.
    is_settled: bool = False
    # Whether it may have this attempt's task although it has not answered.
    is_doubtful: bool = False
    # Whether the agent may be given work that another one has.
    is_repeatable: bool = False
    # Those that have not accepted this attempt.
    tried: tuple[str, ...] = ()
    # How often candidates were looked up, and how often in a row without success.
    lookups: int = 0
    waits: int = 0
    hedges: tuple[HedgeCall, ...] = ()
    choice: AgentChoice | None = None

    @property
    def last_number(self) -> int:
        return self.numbers - 1

    @property
    def in_use(self) -> tuple[str, ...]:
        """The agents that have failed, or have a call at present."""
        return *self.tried, self.agent, *(call.agent for call in self.hedges)


CacheStage = Literal["waiting", "leading", "alone", "left", "used"]


class CacheUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step with a cache has of it."""

    # Of the key; steps that share an output have the same.
    digest: str
    # How often it has asked.
    number: int = 1
    # `leading`: others wait for it. `alone`: it works, and others do not wait. `left`: it is over, was put back, or
    # waits for a person.
    stage: CacheStage = "waiting"
    # The step whose output it uses, and when that had completed.
    run_id: str | None = None
    step: str | None = None
    at: Instant | None = None

    @property
    def is_claimed(self) -> bool:
        """Whether it is noted outside that the step needs the output."""
        return self.stage in {"waiting", "leading"}


class CallDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What few steps have to remember of their calls and rounds."""

    # How often the agent was asked to correct its output.
    repairs: int = 0
    # Of a step that is repeated: the round that it is in, from 1.
    round: int = 0
    route: AgentRoute | None = None
    cache: CacheUse | None = None


NO_DETAILS = CallDetails()


class OutputUnread(Exception):
    """A decision needs outputs that were not read with the run: read them, and decide again."""

    def __init__(self, steps: Iterable[str]) -> None:
        super().__init__()
        self.steps = frozenset(steps)


class StepState(msgspec.Struct, kw_only=True):
    """One step of one run. Every field but the last five is a column of the steps table."""

    name: str
    status: StepStatus = "PENDING"
    # Calls begun, from 1; kills do not count, a claim is not an attempt.
    attempts: int = 0
    # Failures that the agent itself answered: each gives the next attempt a new task id.
    answered_failures: int = 0
    # Replies sent to the agent's questions, and requests to correct its output: each has a task id of its own. Of a
    # child run: how often it has gone on after it waited for people.
    replies: int = 0
    protocol: str | None = None
    context_id: str | None = None
    remote_task_id: str | None = None
    # What the present call, or the next one, carries in place of the input: a person's reply, or the request to correct
    # an output.
    reply: bytes | None = None
    # JSON texts, decoded only by the expression that reads them.
    input: bytes | None = None
    output: bytes | None = None
    error: StepError | None = None
    # What an operator should know though the call succeeded.
    warnings: tuple[str, ...] = ()
    waiting_for: WaitingFor | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    call_details: CallDetails = NO_DETAILS
    # What the step still waits for: needs that are not final yet, and a join as a whole; counted, never stored.
    remaining: int = 0
    # Of the branches that it joins: how many have completed, and how many have ended otherwise. Also never stored.
    joined: int = 0
    lost: int = 0
    # Of a step that is over: the size of a large input or output that was not read; the field has something else then,
    # which is written back as it is. 0: it was read.
    unread_input_bytes: int = 0
    unread_output_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """How large its payloads are."""
        given = (self.unread_input_bytes or len(self.input or b"")) * max(self.attempts, 1)
        return given + (self.unread_output_bytes or len(self.output or b"")) + len(self.reply or b"")

    def read_output(self) -> bytes | None:
        """Raises `OutputUnread`."""
        if self.unread_output_bytes:
            raise OutputUnread([self.name])
        return self.output

    @property
    def is_final(self) -> bool:
        return self.status in FINAL_STEP_STATUSES

    @property
    def round(self) -> int:
        return self.call_details.round

    @property
    def has_begun(self) -> bool:
        """At the beginning of a round, and until an agent or an output is found, no attempt at it has."""
        details = self.call_details
        has_asked = details.route is not None or details.cache is not None
        return self.attempts > 0 or details.round > 0 or has_asked

    @property
    def agent(self) -> str:
        """The agent that was chosen; empty: that of the definition, or none."""
        route = self.call_details.route
        return "" if route is None else route.agent

    @property
    def route(self) -> AgentRoute | None:
        return self.call_details.route

    def change_human_task(self, change: Callable[[HumanTask], HumanTask]) -> None:
        waiting = self.waiting_for
        assert waiting is not None, "only a step that waits has a human task"  # noqa: S101 - an invariant
        # An agent's question, or an unknown outcome, has none until someone claims it.
        self.waiting_for = msgspec.structs.replace(
            waiting, human_task=change(waiting.human_task or HumanTask())
        )

    @property
    def waits_for_events(self) -> bool:
        return self.waiting_for is not None and self.waiting_for.kind == "event"

    @property
    def waits_for_decision(self) -> bool:
        """The compensation has failed, and a person has not decided yet."""
        return (
            self.status == "WAITING"
            and self.waiting_for is not None
            and self.waiting_for.kind == "compensation"
        )

    @property
    def waits_inside(self) -> bool:
        """Its child run waits for people."""
        return self.status == "WAITING" and self.waiting_for is not None and bool(self.waiting_for.inside)

    @property
    def has_open_question(self) -> bool:
        """The agent has asked, and waits for a person."""
        return self.status == "WAITING" and self.waiting_for is not None and self.waiting_for.is_question

    @property
    def has_unsent_reply(self) -> bool:
        """A person has answered the agent's question, and the call that carries it may not begin yet."""
        # A call that carried it and failed has left its error.
        return self.status == "PENDING" and self.reply is not None and self.error is None


class ForEachState(msgspec.Struct):
    """The items of a step while it runs; derived from the stored list and the items' own states."""

    items: list[Json]
    # The first one that has not been examined yet.
    next_index: int = 0
    # Handed out and not over; and over, the failed among them.
    active: int = 0
    finished: int = 0
    failed: int = 0


class WorkflowKey(NamedTuple):
    """A saved version of a workflow."""

    workflow_id: str
    version: int


class ParentStep(NamedTuple):
    """The step of another run that has begun a run."""

    run_id: RunId
    step: str


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why the work of a run is undone, as compensations read it."""

    code: str
    message: str
    step: str | None = None


CompensationStatus = Literal["RUNNING", "COMPLETED", "FAILED"]


class Compensation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the completed steps of a run are undone. The compensations themselves are steps of the run."""

    # FAILED: a person has given up.
    status: CompensationStatus = "RUNNING"
    failure: Failure
    # What the run is afterwards.
    ends: EndStatus
    # The run had ended before.
    reopened: bool = False
    # Of a child run: the step that waits for it.
    asked_by: ParentStep | None = None


class RunState(msgspec.Struct, kw_only=True):
    """One run with its steps. A step that has no entry in `steps` has not been touched yet."""

    id: RunId
    # Of a run of a block: the block.
    workflow: CompiledWorkflow
    correlation_id: str
    input: bytes
    created_at: Instant
    status: RunStatus = "PENDING"
    # Counts transitions; the commit compares it.
    version: int = 0
    # The number of the last event, gap-free from 1.
    seq: int = 0
    output: bytes | None = None
    error: StepError | None = None
    paused: bool = False
    cancel_requested_at: Instant | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    steps: dict[str, StepState] = {}
    # The conversation with each agent: agent -> contextId.
    contexts: dict[str, str] = {}
    # Of the client that started the run.
    trace: TraceContext | None = None
    parent: ParentStep | None = None
    # The block of the workflow that it runs; None: the workflow itself. A block's input is what it reads from outside.
    block: str | None = None
    # How many runs led to it: the one that started it as a child, or whose end fired its trigger, and so on.
    depth: int = 0
    # The last agent event that was known when the run was accepted: it decides the routes to agents.
    routing_version: int = 0
    # None: of no saved version, as in tests of the machine.
    workflow_key: WorkflowKey | None = None
    # For the runs that it starts.
    started_by: str | None = None
    # The trigger that started it, which may wait for its end.
    trigger: str | None = None
    # The A2A message that started it, as `CallerMessage`.
    message: bytes | None = None
    compensation: Compensation | None = None

    # Derived from the steps, so that a transition never looks at all of them.
    ready: deque[str] = msgspec.field(default_factory=deque[str])
    # Joins that have just been decided, and steps whose items are over.
    decided: deque[str] = msgspec.field(default_factory=deque[str])
    # Of the steps that run item by item.
    for_each: dict[str, ForEachState] = {}
    # What expressions have read of the run while it has items: each of them would decode it again.
    decoded: dict[str, Json] = {}
    # Of the inputs and outputs of the steps. An input counts once for each attempt: its tasks have it, too.
    step_bytes: int = 0
    # The events that its steps have taken, by id and time; None: they have not been looked up.
    taken_events: set[tuple[str, str]] | None = None
    in_flight: int = 0
    retrying: int = 0
    # Steps that wait for the world.
    waiting_for_time_or_event: int = 0
    awaiting_person: int = 0
    unfinished: int = 0
    # The first failure that nothing handles, and of several at one instant that of the first step: no
    # further step starts, the run ends FAILED.
    failure: StepError | None = None
    # While it is compensated: the steps and items that are still to be undone, the present one first.
    to_compensate: deque[str] = msgspec.field(default_factory=deque[str])
    # The items of the loops among them, by the loop: each compensation would decode them again.
    items_to_compensate: dict[str, list[Json]] = {}

    @property
    def is_compensating(self) -> bool:
        return self.compensation is not None and self.compensation.status == "RUNNING"

    @property
    def has_ended_before(self) -> bool:
        """Its end has been reported, and its work was undone afterwards."""
        return self.compensation is not None and self.compensation.reopened

    @property
    def outer_scope(self) -> dict[str, msgspec.Raw] | None:
        """Of a block: what it reads from outside, by the names that expressions use."""
        return None if self.block is None else _outer_scopes.decode(self.input)

    @property
    def size_bytes(self) -> int:
        """What is stored of the payloads of the run and its steps."""
        return len(self.input) + self.step_bytes

    @property
    def is_final(self) -> bool:
        return self.status in FINAL_RUN_STATUSES


_outer_scopes: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def open_question(steps: Iterable[StepState]) -> StepState | None:
    """The step whose question was asked first, of those that wait for an answer."""
    asking = [step for step in steps if _asks_as_agent(step)]
    return min(asking, key=asked_at, default=None)


def _asks_as_agent(step: StepState) -> bool:
    return step.status == "WAITING" and step.waiting_for is not None and step.waiting_for.is_of_an_agent


def asked_at(step: StepState) -> tuple[int, str]:
    since = None if step.waiting_for is None else step.waiting_for.since
    return since or 0, step.name


def task_state(status: RunStatus, error: StepError | None, steps: Iterable[StepState]) -> TaskState:
    """What a run is to its A2A caller. An unknown outcome is the operator's to resolve, not the caller's."""
    match status:
        case "PENDING":
            return "submitted"
        case "RUNNING" | "PAUSED" | "COMPENSATING":
            return "working"
        case "WAITING":
            step = open_question(steps)
            if step is None or step.waiting_for is None:
                return "working"
            return "auth-required" if step.waiting_for.kind == "auth" else "input-required"
        case "COMPLETED":
            return "completed"
        case "CANCELLED":
            return "canceled"
        case "FAILED":
            return "rejected" if error is not None and error.rejected else "failed"
        case _:
            assert_never(status)
