"""The machine inputs: requests of people, results of agents, ends of child runs, and timers that are due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.candidates import Candidate
from trunkline.machine.state import EndStatus, WaitingFor
from trunkline.messages import NO_OUTPUT, AgentResult, ReplyMessage, StepError

# Of a call; and of a compensation that has failed.
ResolvedOutcome = Literal["succeeded", "failed", "call_again"]
CompensationDecision = Literal["retry", "skip", "give_up"]


class RunRequested(msgspec.Struct, frozen=True, tag="run_requested"):
    """
    Start the run; `kept` are the outputs that a retried run takes over, as JSON by step or item, `items` the lists of
    steps some of whose items are among them, and `inputs` what a person gives steps in place of what the workflow says.
    """

    kept: dict[str, msgspec.Raw] = {}
    items: dict[str, msgspec.Raw] = {}
    inputs: dict[str, msgspec.Raw] = {}


class ResultArrived(msgspec.Struct, frozen=True, tag="result_arrived"):
    result: AgentResult


class RoundEnd(msgspec.Struct, frozen=True):
    """How a round of a repeated block has ended."""

    # Whether no other round follows.
    done: bool
    # What the next one reads of it, as an object by the names that expressions use.
    carried: msgspec.Raw


class ChildEnded(msgspec.Struct, frozen=True, tag="child_ended", omit_defaults=True):
    """The run that the step has begun is over."""

    step: str
    run_id: str
    status: EndStatus
    output: msgspec.Raw = NO_OUTPUT
    error: StepError | None = None
    round: RoundEnd | None = None


class ChildRefused(msgspec.Struct, frozen=True, tag="child_refused"):
    """The run that the step has asked for cannot begin."""

    step: str
    run_id: str
    error: StepError


class ChildWaiting(msgspec.Struct, frozen=True, tag="child_waiting"):
    """The run that the step has begun waits for people alone."""

    step: str
    run_id: str
    waiting_for: WaitingFor


class ChildContinued(msgspec.Struct, frozen=True, tag="child_continued"):
    """The run that the step has begun goes on."""

    step: str
    run_id: str


class RetryDue(msgspec.Struct, frozen=True, tag="retry_due"):
    step: str
    attempt: int


class WaitDue(msgspec.Struct, frozen=True, tag="wait_due"):
    """The time has come for which the step waited in this attempt, or until which it would wait."""

    step: str
    attempt: int


class ReceivedEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that has been stored. A signal is one, too: its type is its name, and it has no key."""

    id: str
    type: str
    at: Instant
    key: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    # Who has sent it; with the id, what makes it one event.
    source: str = ""

    def shown(self) -> JsonObject:
        """As the output of a step has it."""
        return {
            "type": self.type,
            "key": self.key,
            "data": decode(bytes(self.data)),
            "id": self.id,
            "at": rfc3339(self.at),
        }


def event_identity(shown: Json) -> tuple[str, str] | None:
    """
    What two events that a run has received differ in, by the output of a step; None: something else.

    Two sources may give the same id; no two events arrive at the same time.
    """
    match shown:
        case {"id": str(id_), "at": str(at)}:
            return id_, at
        case _:
            return None


class CandidatesFound(msgspec.Struct, frozen=True, tag="candidates_found", omit_defaults=True):
    """The agents that the step may call, and what is known of them; those that are equal take turns."""

    step: str
    # Of the lookup; with `hedge`, of the call that gets company.
    number: int
    candidates: tuple[Candidate, ...]
    # How many there are in addition.
    others: int = 0
    hedge: bool = False


class CachedOutput(msgspec.Struct, frozen=True):
    """An output that a step has had before, and whose it was."""

    output: msgspec.Raw
    run_id: str
    step: str
    at: Instant


# `again`: it can be had, or could be; the step is to ask once more.
LookupOutcome = Literal["found", "lead", "alone", "again"]


class OutputLookedUp(msgspec.Struct, frozen=True, tag="output_looked_up", omit_defaults=True):
    """What the cache says: an output, or that the step is to do its work, with others waiting for it or not."""

    step: str
    # Of the question.
    number: int
    outcome: LookupOutcome
    cached: CachedOutput | None = None


class HedgeDue(msgspec.Struct, frozen=True, tag="hedge_due"):
    """The call with this number is slow."""

    step: str
    attempt: int
    number: int


class EventArrived(msgspec.Struct, frozen=True, tag="event_arrived"):
    """An event of a type and with a key for which the step waited in this attempt."""

    step: str
    attempt: int
    event: ReceivedEvent


class EventsRead(msgspec.Struct, frozen=True, tag="events_read"):
    """Of the events that had arrived before the step began to wait, those up to number `last` have come; not all."""

    step: str
    attempt: int
    last: int


class TurnContinued(msgspec.Struct, frozen=True, tag="turn_continued"):
    """More steps may begin than one turn begins."""


class DeadlinePassed(msgspec.Struct, frozen=True, tag="deadline_passed"):
    pass


class StepDeadlinePassed(msgspec.Struct, frozen=True, tag="step_deadline_passed"):
    step: str


class CancelRequested(msgspec.Struct, frozen=True, tag="cancel_requested", omit_defaults=True):
    # Why a run that has not started never will.
    reason: str | None = None


class CancelOverdue(msgspec.Struct, frozen=True, tag="cancel_overdue"):
    pass


class PauseRequested(msgspec.Struct, frozen=True, tag="pause_requested"):
    pass


class ResumeRequested(msgspec.Struct, frozen=True, tag="resume_requested"):
    pass


class ReplyGiven(msgspec.Struct, frozen=True, tag="reply_given"):
    step: str
    reply: ReplyMessage


class ReplyOverdue(msgspec.Struct, frozen=True, tag="reply_overdue"):
    """The question that the agent asked in this attempt, after this number of replies, was not answered in time."""

    step: str
    attempt: int
    replies: int


class PersonAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's answer to a human task."""

    at: Instant
    # The name of an API key, or who a link was made for; None: it is not known.
    by: str | None = None
    # One of the options, if the task has some.
    answer: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    comment: str | None = None

    def shown(self) -> JsonObject:
        """As the output of a step has it."""
        return {
            "answer": self.answer,
            "data": decode(bytes(self.data)),
            "by": self.by,
            "at": rfc3339(self.at),
            "comment": self.comment,
        }


class PersonAnswered(msgspec.Struct, frozen=True, tag="person_answered"):
    """A person has answered the human task of this attempt."""

    step: str
    attempt: int
    answer: PersonAnswer


class EscalationDue(msgspec.Struct, frozen=True, tag="escalation_due", omit_defaults=True):
    """The human task or the question of this attempt has not been answered in time, so more people get it."""

    step: str
    attempt: int
    # How many escalations there were before.
    number: int
    # Of an agent's question: how many it had asked before.
    replies: int = 0


class TaskClaimed(msgspec.Struct, frozen=True, tag="task_claimed"):
    """A person begins to work on what the step asks people."""

    step: str
    attempt: int
    replies: int
    by: str


class TaskReleased(msgspec.Struct, frozen=True, tag="task_released"):
    """The person who has claimed it no longer works on it."""

    step: str
    attempt: int
    replies: int
    by: str


class OutcomeResolved(msgspec.Struct, frozen=True, tag="outcome_resolved"):
    step: str
    outcome: ResolvedOutcome
    output: msgspec.Raw = NO_OUTPUT


class CompensationDecided(msgspec.Struct, frozen=True, tag="compensation_decided"):
    """A person has decided how the run goes on after a compensation has failed."""

    step: str
    decision: CompensationDecision


class CompensateRequested(msgspec.Struct, frozen=True, tag="compensate_requested", omit_defaults=True):
    """Undo the work of a run that has ended."""


Input = (
    RunRequested
    | ResultArrived
    | ChildEnded
    | ChildRefused
    | ChildWaiting
    | ChildContinued
    | RetryDue
    | WaitDue
    | CandidatesFound
    | OutputLookedUp
    | HedgeDue
    | EventArrived
    | EventsRead
    | TurnContinued
    | DeadlinePassed
    | StepDeadlinePassed
    | CancelRequested
    | CancelOverdue
    | PauseRequested
    | ResumeRequested
    | ReplyGiven
    | ReplyOverdue
    | PersonAnswered
    | EscalationDue
    | TaskClaimed
    | TaskReleased
    | OutcomeResolved
    | CompensationDecided
    | CompensateRequested
)

_decoder: msgspec.json.Decoder[Input] = msgspec.json.Decoder(Input)

encode_input: Callable[[Input], bytes] = encode
decode_input: Callable[[bytes], Input] = _decoder.decode
