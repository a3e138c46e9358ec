"""
One run, played through the machine without store, broker or agents.

    play = Rehearsal(YAML)
    play.start()
    play.succeed("research", {"text": "found"})

It keeps what the machine has recorded and wished for, and does to timers and tasks what the store would do.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.jsontypes import Json, decode, encode
from trunkline.machine.candidates import Candidate
from trunkline.machine.decide import decide
from trunkline.machine.effects import (
    AwaitEvents,
    CancelTimer,
    ClaimOutput,
    DispatchTask,
    Effect,
    FindCandidates,
    KeepOutput,
    ListTask,
    ReleaseOutput,
    SendRunInput,
    StartChildRun,
    StartTimer,
    StopAwaitingEvents,
    StopTask,
    UnlistTask,
)
from trunkline.machine.events import Event
from trunkline.machine.evolve import restore
from trunkline.machine.inputs import (
    CachedOutput,
    CancelRequested,
    CandidatesFound,
    ChildEnded,
    EndStatus,
    Input,
    LookupOutcome,
    OutcomeResolved,
    OutputLookedUp,
    PauseRequested,
    ReplyGiven,
    ResolvedOutcome,
    ResultArrived,
    ResumeRequested,
    RunRequested,
)
from trunkline.machine.state import RunState, StepState
from trunkline.machine.turn import Turn
from trunkline.messages import AgentResult, AgentTask, Question, ReplyMessage, ResultStatus, StepError
from trunkline.retry_policy import RetryPolicy
from trunkline.workflow import CompiledWorkflow, compile_workflow, load_workflow

RUN = RunId("018f0000-0000-7000-8000-000000000001")
OTHER_RUN = RunId("018f0000-0000-7000-8000-000000000002")
START = Instant(1_000_000_000)


def workflow_of(text: str) -> CompiledWorkflow:
    return compile_workflow(load_workflow(text).definition)


def fresh_state(workflow: CompiledWorkflow, run_input: Json = None) -> RunState:
    state = RunState(
        id=RUN, workflow=workflow, correlation_id="c-1", input=encode(run_input), created_at=START
    )
    restore(state, [])
    return state


class MachineHarness:
    def __init__(self, workflow: str | CompiledWorkflow, run_input: Json = None) -> None:
        if isinstance(workflow, str):
            workflow = workflow_of(workflow)
        self.state = fresh_state(workflow, run_input)
        self.now = START
        self.events: list[Event] = []
        # When each event was recorded.
        self.times: list[Instant] = []
        self.tasks: list[AgentTask] = []
        self._latest: dict[str, AgentTask] = {}
        self.stops: list[StopTask] = []
        self.lookups: list[FindCandidates] = []
        # What was asked of the cache, put into it, and given up.
        self.claims: list[ClaimOutput] = []
        self.kept: list[KeepOutput] = []
        self.released: list[ReleaseOutput] = []
        # Runs that steps have begun, and what they were told.
        self.runs: list[StartChildRun] = []
        self.told: list[tuple[str, Input]] = []
        self.timers: dict[str, StartTimer] = {}
        self._fired: set[str] = set()
        # What the settings say of a question's deadline.
        self.reply_timeout: timedelta | None = None
        # And of the size of a run.
        self.max_bytes: int | None = None

    def take(self, *inputs: Input) -> Turn:
        turn = decide(
            self.state, inputs, self.now, reply_timeout=self.reply_timeout, max_bytes=self.max_bytes
        )
        self.state.version += 1
        self.events += turn.events
        self.times += [self.now] * len(turn.events)
        for effect in turn.effects:
            self._note(effect)
        for effect in turn.effects:
            # The stores apply what a turn drops after what it sets.
            if isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
        return turn

    def _note(self, effect: Effect) -> None:
        match effect:
            case DispatchTask(task):
                self.tasks.append(task)
                self._latest[task.step] = task
            case StopTask():
                self.stops.append(effect)
            case FindCandidates():
                self.lookups.append(effect)
            case ClaimOutput():
                self.claims.append(effect)
            case KeepOutput():
                self.kept.append(effect)
            case ReleaseOutput():
                self.released.append(effect)
            case StartChildRun():
                self.runs.append(effect)
            case SendRunInput(run_id, _, item):
                self.told.append((run_id, item))
            case StartTimer(key):
                # The input queue takes each key once.
                if key not in self._fired:
                    self.timers[key] = effect
            case CancelTimer() | AwaitEvents() | StopAwaitingEvents() | ListTask() | UnlistTask():
                pass

    def start(self, **kept: Json) -> Turn:
        return self.take(RunRequested({name: msgspec.Raw(encode(output)) for name, output in kept.items()}))

    def pause(self) -> Turn:
        return self.take(PauseRequested())

    def resume(self) -> Turn:
        return self.take(ResumeRequested())

    def cancel(self) -> Turn:
        return self.take(CancelRequested())

    def reply(self, step: str, text: str) -> Turn:
        return self.take(ReplyGiven(step, ReplyMessage(text=text)))

    def resolve(self, step: str, outcome: ResolvedOutcome, output: Json = None) -> Turn:
        return self.take(OutcomeResolved(step, outcome, msgspec.Raw(encode(output))))

    def pass_time(self, delay: timedelta) -> None:
        """Fires the timers that become due, each at its time."""
        end = after(self.now, delay)
        while due := sorted((t for t in self.timers.values() if t.due <= end), key=lambda timer: timer.due):
            self.now = max(self.now, due[0].due)
            del self.timers[due[0].key]
            self._fired.add(due[0].key)
            self.take(due[0].item)
        self.now = end

    def task(self, step: str) -> AgentTask:
        """The step's latest call."""
        return self._latest[step]

    def calls(self, step: str) -> list[AgentTask]:
        return [task for task in self.tasks if task.step == step]

    def succeed(self, step: str, output: Json = None, context_id: str | None = None) -> Turn:
        return self.answer(
            self.task(step), "success", output=msgspec.Raw(encode(output)), context_id=context_id
        )

    def fail(self, step: str, code: str = "agent_task_failed", **fields: int) -> Turn:
        return self.answer(self.task(step), "error", error=error(code, **fields))

    def work(self, step: str, remote_task_id: str = "remote-1", context_id: str = "context-1") -> Turn:
        return self.answer(self.task(step), "working", remote_task_id=remote_task_id, context_id=context_id)

    def ask(self, step: str, text: str = "Which one?", remote_task_id: str = "remote-1") -> Turn:
        return self.answer(
            self.task(step),
            "interrupted",
            question=Question(kind="input", text=text),
            remote_task_id=remote_task_id,
            context_id="context-1",
        )

    def offer(self, *candidates: Candidate) -> Turn:
        """What the last lookup has found."""
        lookup = self.lookups[-1]
        found = tuple(each for each in candidates if each.agent not in lookup.without)
        return self.take(CandidatesFound(lookup.step, lookup.number, found, hedge=lookup.hedge))

    def look_up(self, outcome: LookupOutcome, output: Json = None) -> Turn:
        """What the cache says to the last question."""
        claim = self.claims[-1]
        found = CachedOutput(msgspec.Raw(encode(output)), OTHER_RUN, "other", START)
        cached = found if outcome == "found" else None
        return self.take(OutputLookedUp(claim.step, claim.number, outcome, cached))

    def run_of(self, step: str) -> StartChildRun:
        """The run that the step has begun last."""
        return next(run for run in reversed(self.runs) if run.step == step)

    def end_run(
        self, step: str, status: EndStatus, output: Json = None, error: StepError | None = None
    ) -> Turn:
        return self.take(
            ChildEnded(step, self.run_of(step).run_id, status, msgspec.Raw(encode(output)), error)
        )

    def answer(
        self,
        task: AgentTask,
        status: ResultStatus,
        *,
        output: msgspec.Raw | None = None,
        error: StepError | None = None,
        question: Question | None = None,
        retry: RetryPolicy | None = None,
        remote_task_id: str | None = None,
        context_id: str | None = None,
    ) -> Turn:
        """What became of one call, in general."""
        result = AgentResult(
            task_id=task.task_id,
            run_id=task.run_id,
            step=task.step,
            attempt=task.attempt,
            status=status,
            at=self.now,
            output=output if output is not None else msgspec.Raw(b"null"),
            error=error,
            question=question,
            retry=retry,
            remote_task_id=remote_task_id,
            context_id=context_id,
        )
        return self.take(ResultArrived(result))

    def step(self, name: str) -> StepState:
        return self.state.steps.get(name) or StepState(name=name)

    @property
    def statuses(self) -> dict[str, str]:
        return {name: self.step(name).status for name in self.state.workflow.steps}

    @property
    def output(self) -> Json:
        assert self.state.output is not None
        return decode(self.state.output)

    @property
    def history(self) -> list[str]:
        """The types of the events so far."""
        return [type(event).__name__ for event in self.events]


def error(code: str, **fields: int) -> StepError:
    made = StepError(code=code, message=f"It was {code}.")
    for name, value in fields.items():
        setattr(made, name, value)
    return made
