"""
A simulated environment of one run, with arbitrary failures, and the invariants that hold after every turn.

It plays bridge, store, other runs and people: answers calls and ends children in any order, too late or twice, lets
timers ring, restarts from what is stored, and lets people interfere at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
from tests.unit.machine.machine_harness import MachineHarness, error, fresh_state

from trunkline.clock import Instant
from trunkline.ids import task_id
from trunkline.jsontypes import Json, decode
from trunkline.machine.candidates import Candidate
from trunkline.machine.decide import CANCEL_TIMER, DEADLINE_TIMER
from trunkline.machine.effects import (
    AwaitEvents,
    ClaimOutput,
    DispatchTask,
    FindCandidates,
    KeepOutput,
    ReleaseOutput,
    SendRunInput,
    StartChildRun,
    StopAwaitingEvents,
    StopTask,
)
from trunkline.machine.events import (
    StepAgentChosen,
    StepBegan,
    StepChildStarted,
    StepFailedOver,
    StepHedgeLost,
    StepHedgeWon,
    StepOutcomeResolved,
    StepRepairRequested,
    StepReplied,
    StepRetryScheduled,
    StepStarted,
)
from trunkline.machine.evolve import count_waits, evolve, restore
from trunkline.machine.inputs import (
    CachedOutput,
    CancelRequested,
    CandidatesFound,
    ChildEnded,
    ChildRefused,
    EndStatus,
    EventArrived,
    Input,
    LookupOutcome,
    OutcomeResolved,
    OutputLookedUp,
    PauseRequested,
    PersonAnswer,
    PersonAnswered,
    ReceivedEvent,
    ReplyGiven,
    ResultArrived,
    ResumeRequested,
    RoundEnd,
    event_identity,
)
from trunkline.machine.retry import was_sent
from trunkline.machine.state import RunState, StepState
from trunkline.machine.steps.child import child_run_of, is_child
from trunkline.machine.steps.timers import agent_timer, cache_timer, retry_timer, wait_timer
from trunkline.machine.turn import Turn
from trunkline.messages import AgentResult, AgentTask, Question, ReplyMessage, ResultStatus, StepError
from trunkline.workflow import CompiledWorkflow, step_of_item

OUTPUTS = (b'{"ok":true}', b'{"ok":false}', b"null", b"not JSON")
ERRORS = (
    ("agent_timeout", None),
    ("agent_unreachable", None),
    ("agent_http_error", 503),
    ("agent_task_failed", None),
)
INPUT: Json = {"yes": True, "no": False, "list": [1, 2, 3], "none": []}

# Those that offer every skill, the cheapest first.
AGENTS = (
    Candidate(agent="A", cost=1, repeatable=True),
    Candidate(agent="B", cost=2, repeatable=True),
    Candidate(agent="C", cost=3),
)

Key = tuple[str, int]
Possibility = Callable[[], Input | None]
Kind = Literal["success", "answer", "timer", "command", "pause", "late", "again", "restart", "end"]
# How often each kind is tried, mixed so that neighbours differ.
WEIGHTS: tuple[Kind, ...] = (
    "answer", "timer", "command", "timer", "answer", "command", "timer", "answer", "success", "restart", "timer",
    "answer", "command", "answer", "timer", "success", "command", "answer", "pause", "timer", "command", "late",
    "answer", "command", "again", "answer", "timer", "pause", "answer", "timer", "command", "answer", "end",
)  # fmt: skip


class RunSimulation:
    def __init__(self, workflow: CompiledWorkflow) -> None:
        self.play = MachineHarness(workflow, INPUT)
        self.replayed = fresh_state(workflow, INPUT)
        self.stored: dict[str, bytes] = {}
        # Calls that have not ended, and all that ever were.
        self.open: dict[Key, AgentTask] = {}
        self.calls: dict[Key, AgentTask] = {}
        self.stopped: set[Key] = set()
        # The same of runs that steps have begun.
        self.open_runs: dict[str, StartChildRun] = {}
        self.runs: dict[str, StartChildRun] = {}
        self.stopped_runs: set[str] = set()
        # What was asked for the choice of an agent.
        self.lookups: dict[tuple[str, int, bool], FindCandidates] = {}
        # The claims on outputs, by step, and those that lead.
        self.claims: dict[str, ClaimOutput] = {}
        self.leading: set[str] = set()
        # Steps that wait for events, and how many events have arrived.
        self.waits: dict[str, AwaitEvents] = {}
        self.arrived = 0
        self.taken: list[Input] = []
        self._seen: dict[str, str] = {}

    # --- what can happen

    def happen(self, number: int) -> Input | None:
        """One of all that can happen next, by its number; what it has for the inbox, if anything."""
        number, place = divmod(number, len(WEIGHTS))
        kinds = self._possibilities()
        # A kind that offers nothing at present leaves its place to the next.
        order: list[Kind] = [*WEIGHTS[place:], *WEIGHTS[:place]]
        options = next(kinds[kind] for kind in order if kinds[kind])
        return options[number % len(options)]()

    def _possibilities(self) -> dict[Kind, list[Possibility]]:
        return {
            "success": [
                *(lambda call=call: self._succeed(call, OUTPUTS[0]) for call in self.open.values()),
                *(lambda run=run: self._end(run, "COMPLETED") for run in self.open_runs.values()),
            ],
            "answer": list(self._other_answers()),
            "timer": [
                lambda key=key: self._fire_timer(key) for key in self.play.timers if key != DEADLINE_TIMER
            ],
            "command": list(self._commands()),
            "pause": [ResumeRequested if self.play.state.paused else PauseRequested],
            "late": [
                *(
                    lambda call=call: self._succeed(call, OUTPUTS[0])
                    for call in list(self.calls.values())[-3:]
                ),
                *(lambda run=run: self._end(run, "FAILED") for run in list(self.runs.values())[-3:]),
            ],
            "again": [lambda item=item: item for item in self.taken[-6:]],
            "restart": [self._restart],
            "end": [CancelRequested, lambda: self._fire_timer(DEADLINE_TIMER)],
        }

    def help(self) -> Input:  # noqa: C901, PLR0912 - one case for each thing that it may wait for
        """What brings the run nearer to its end: an answer, the next attempt, or what people owe it."""
        state = self.play.state
        if state.paused:
            return ResumeRequested()
        for lookup in self.lookups.values():
            return self._offer(lookup, AGENTS)
        for claim in self.claims.values():
            if claim.step not in self.leading:
                return self._look_up(claim, "lead")
        for call in self.open.values():
            return self._succeed(call, OUTPUTS[0])
        for run in self.open_runs.values():
            return self._end(run, "CANCELLED" if run.run_id in self.stopped_runs else "COMPLETED")
        for key in self.play.timers:
            if key.startswith(("retry/", "wait/", "continue/", "escalation/", "agent/", "hedge/", "cache/")):
                return self.play.timers.pop(key).item
        for wait in self.waits.values():
            return self._arrive(wait, is_new=True)
        for step in state.steps.values():
            if step.waiting_for is not None and step.waiting_for.human_task is not None:
                return self._answer_task(step, f"{len(step.waiting_for.human_task.answers)}", "yes")
            if step.status == "WAITING":
                return ReplyGiven(step.name, ReplyMessage(text="Yes."))
            if step.status == "OUTCOME_UNKNOWN":
                return OutcomeResolved(step.name, "call_again")
        raise AssertionError(f"Nobody can help a run that is {state.status}: {self.play.statuses}")

    def _offer(self, lookup: FindCandidates, agents: tuple[Candidate, ...]) -> Input:
        self.lookups.pop((lookup.step, lookup.number, lookup.hedge), None)
        found = tuple(
            each
            for each in agents
            if each.agent not in lookup.without
            and lookup.agent in {None, each.agent}
            and (each.repeatable or not lookup.repeatable)
        )
        return CandidatesFound(lookup.step, lookup.number, found, hedge=lookup.hedge)

    def _look_up(self, claim: ClaimOutput, outcome: LookupOutcome) -> Input:
        if outcome == "lead":
            self.leading.add(claim.step)
        elif outcome != "again":
            self.claims.pop(claim.step, None)
        found = CachedOutput(msgspec.Raw(OUTPUTS[1]), "another run", "x", self.play.now)
        return OutputLookedUp(claim.step, claim.number, outcome, found if outcome == "found" else None)

    def _other_answers(self) -> Iterator[Callable[[], Input]]:
        for lookup in list(self.lookups.values()):
            for agents in (AGENTS, AGENTS[1:], AGENTS, tuple(map(_broken, AGENTS)), ()):
                yield lambda lookup=lookup, agents=agents: self._offer(lookup, agents)
        for claim in list(self.claims.values()):
            outcomes: tuple[LookupOutcome, ...] = ("found", "lead", "alone", "again")
            for outcome in () if claim.step in self.leading else outcomes:
                yield lambda claim=claim, outcome=outcome: self._look_up(claim, outcome)
        for key, call in list(self.open.items()):
            for output in OUTPUTS[1:]:
                yield lambda call=call, output=output: self._succeed(call, output)
            for code, status in ERRORS:
                yield lambda call=call, code=code, status=status: self._fail(call, code, status)
            yield lambda call=call: self._result(call, "working", remote_task_id="r")
            yield lambda call=call: self._ask(call)
            if key in self.stopped:
                yield lambda call=call: self._result(call, "cancelled")
            if call.at_most_once:
                yield lambda call=call: self._result(call, "unknown")

        for run in list(self.open_runs.values()):
            yield lambda run=run: self._end(run, "COMPLETED", OUTPUTS[1])
            yield lambda run=run: self._end(run, "COMPLETED", done=False)
            yield lambda run=run: self._end(run, "FAILED")
            # Whether the parent wishes it, or a person does.
            yield lambda run=run: self._end(run, "CANCELLED")
            yield lambda run=run: self._refuse(run)

    def _end(
        self, run: StartChildRun, status: EndStatus, output: bytes = OUTPUTS[0], *, done: bool = True
    ) -> Input:
        self.open_runs.pop(run.run_id, None)
        failure = error("agent_task_failed") if status == "FAILED" else None
        repeated = self.play.state.workflow.plan(run.step).definition.repeat is not None
        round_ = RoundEnd(done, msgspec.Raw(b"{}")) if repeated and status == "COMPLETED" else None
        return ChildEnded(run.step, run.run_id, status, msgspec.Raw(output), failure, round_)

    def _refuse(self, run: StartChildRun) -> Input:
        self.open_runs.pop(run.run_id, None)
        return ChildRefused(run.step, run.run_id, error("workflow_unknown"))

    def _arrive(self, wait: AwaitEvents, *, is_new: bool) -> Input:
        self.arrived += is_new
        number, data = self.arrived, OUTPUTS[self.arrived % 2]
        event = ReceivedEvent(f"e{number}", "e", Instant(number), None, msgspec.Raw(data))
        return EventArrived(wait.step, wait.attempt, event)

    def _answer_task(self, step: StepState, by: str | None, answer: str) -> Input:
        return PersonAnswered(step.name, step.attempts, PersonAnswer(at=self.play.now, by=by, answer=answer))

    def _commands(self) -> Iterator[Callable[[], Input]]:
        for wait in list(self.waits.values()):
            yield lambda wait=wait: self._arrive(wait, is_new=True)
            yield lambda wait=wait: self._arrive(wait, is_new=False)
        for step in self.play.state.steps.values():
            name = step.name
            if step.status == "WAITING":
                yield lambda name=name: ReplyGiven(name, ReplyMessage(text="Yes."))
                for by in ("0", "1"):
                    yield lambda step=step, by=by: self._answer_task(step, by, "yes")
                yield lambda step=step: self._answer_task(step, None, "no")
            if step.status == "OUTCOME_UNKNOWN":
                yield lambda name=name: OutcomeResolved(name, "succeeded", msgspec.Raw(OUTPUTS[0]))
                yield lambda name=name: OutcomeResolved(name, "failed")
                yield lambda name=name: OutcomeResolved(name, "call_again")

    def _succeed(self, call: AgentTask, output: bytes) -> Input:
        return self._result(
            call, "success", output=msgspec.Raw(output), context_id=f"context of {call.agent}"
        )

    def _fail(self, call: AgentTask, code: str, http_status: int | None) -> Input:
        failure = error(code) if http_status is None else error(code, http_status=http_status)
        return self._result(call, "error", failure=failure)

    def _ask(self, call: AgentTask) -> Input:
        question = Question(kind="input", text="Which?")
        return self._result(call, "interrupted", question=question, remote_task_id="r", context_id="asked")

    def _result(
        self,
        call: AgentTask,
        status: ResultStatus,
        *,
        output: msgspec.Raw | None = None,
        failure: StepError | None = None,
        question: Question | None = None,
        remote_task_id: str | None = None,
        context_id: str | None = None,
    ) -> Input:
        if status != "working":
            self.open.pop((call.task_id, call.attempt), None)
        return ResultArrived(
            AgentResult(
                task_id=call.task_id,
                run_id=call.run_id,
                step=call.step,
                attempt=call.attempt,
                status=status,
                at=self.play.now,
                output=output or msgspec.Raw(b"null"),
                error=failure,
                question=question,
                remote_task_id=remote_task_id,
                context_id=context_id,
            )
        )

    def _fire_timer(self, key: str) -> Input | None:
        timer = self.play.timers.pop(key, None)
        if timer is None:
            return None
        self.play.now = max(self.play.now, timer.due)
        return timer.item

    def _restart(self) -> None:
        """Forgets what is in memory and goes on from what is stored."""
        self.play.state = self._restored()

    # --- one turn, and what must hold after it

    def turn(self, inputs: list[Input]) -> Turn:
        was_final, was_paused = self.play.state.is_final, self.play.state.paused
        turn = self.play.take(*inputs)
        self.taken += inputs
        if was_final:
            assert (turn.events, turn.effects) == ([], []), "a final state was left"
        if was_paused and turn.state.paused and not any(isinstance(i, ResumeRequested) for i in inputs):
            begun = [
                event
                for event in turn.events
                if isinstance(event, StepStarted | StepChildStarted | StepBegan)
            ]
            assert begun == [], "started while paused"
        # A step may have three items.
        most = 4 * len(inputs) + 9 * len(turn.state.workflow.steps) + 4
        assert len(turn.events) <= most, "one turn recorded too much"
        self._perform(turn)
        self._check_history(turn)
        self._check_steps()
        self._check_wake_reasons()
        self._check_runs()
        return turn

    def _perform(self, turn: Turn) -> None:  # noqa: C901, PLR0912 - one case for each effect
        for step in turn.changed.values():
            self.stored[step.name] = msgspec.msgpack.encode(step)
        for event in turn.events:
            evolve(self.replayed, event, turn.now)
        for effect in turn.effects:
            if isinstance(effect, StopTask):
                self.stopped.add((effect.task_id, effect.attempt))
            elif isinstance(effect, DispatchTask):
                task = effect.task
                key = (task.task_id, task.attempt)
                assert key not in self.calls, "a call was made twice"
                busy = [
                    call.agent
                    for k, call in self.open.items()
                    if call.step == task.step and k not in self.stopped
                ]
                hedge = self.play.state.workflow.plan(task.step).definition.hedge
                assert len(busy) < (1 if hedge is None else hedge.max), (
                    "too many calls in flight for one step"
                )
                assert task.agent not in busy, "an agent has the same work twice"
                self.open[key] = self.calls[key] = task
            elif isinstance(effect, FindCandidates):
                self.lookups[effect.step, effect.number, effect.hedge] = effect
            elif isinstance(effect, ClaimOutput):
                self.claims[effect.step] = effect
                self.leading.discard(effect.step)
            elif isinstance(effect, KeepOutput | ReleaseOutput):
                self.claims.pop(effect.step, None)
                self.leading.discard(effect.step)
            elif isinstance(effect, AwaitEvents):
                self.waits[effect.step] = effect
            elif isinstance(effect, StopAwaitingEvents):
                self.waits.pop(effect.step, None)
            elif isinstance(effect, StartChildRun):
                assert effect.run_id not in self.runs, "a run was begun twice"
                self.open_runs[effect.run_id] = self.runs[effect.run_id] = effect
            elif isinstance(effect, SendRunInput):
                assert effect.run_id in self.runs, "somebody is told who was never there"
                if isinstance(effect.item, CancelRequested):
                    self.stopped_runs.add(effect.run_id)

    def _check_runs(self) -> None:
        """A run that nobody waits for has been told to end."""
        state = self.play.state
        for run in self.open_runs.values():
            step = self.play.step(run.step)
            plan = state.workflow.plan(step.name)
            is_waited_for = step.status == "RUNNING" and run.run_id == child_run_of(state.id, plan, step)
            told = run.run_id in self.stopped_runs
            assert told or (is_waited_for and not state.is_final), "a run was left alone"
            ending = state.failure is not None or state.cancel_requested_at is not None
            assert told or not ending, "a run goes on though its parent ends"

    def _check_history(self, turn: Turn) -> None:
        state = self.play.state
        assert state.seq == len(self.play.events), "the numbers of the events have a gap"
        self.replayed.version = state.version
        assert normal(self.replayed) == normal(state), "replaying the events gives another state"
        assert normal(self._restored()) == normal(state), "reading the rows gives another state"
        for event in turn.events:
            if isinstance(event, StepStarted):
                self._check_start(event)

    def _check_start(self, start: StepStarted) -> None:
        """The rules of task ids, of attempts and of `at_most_once`, by what lies between two starts."""
        history = self.play.events[: self.play.events.index(start)]
        before = [event for event in history if getattr(event, "step", None) == start.step]
        starts = [event for event in before if isinstance(event, StepStarted)]
        if not starts:
            assert (start.attempt, start.task_id.rpartition("/")[2]) == (1, "0")
            return
        between = before[before.index(starts[-1]) + 1 :]
        replied = any(isinstance(event, StepReplied | StepRepairRequested) for event in between)
        retries = [event for event in between if isinstance(event, StepRetryScheduled)]
        resolved = any(isinstance(event, StepOutcomeResolved) for event in between)
        chosen = any(isinstance(event, StepAgentChosen) for event in between)
        failed_over = [event for event in between if isinstance(event, StepFailedOver)]
        is_new = replied or chosen or any(retry.answered for retry in retries)
        # The call of another agent may have taken the place of the one that was started.
        took_over = any(isinstance(event, StepHedgeLost | StepHedgeWon) for event in between)
        assert took_over or (start.task_id != starts[-1].task_id) == is_new, "the task id breaks the rule"
        is_attempt = not replied and (bool(retries) or resolved or not failed_over)
        assert start.attempt == starts[-1].attempt + is_attempt, "the attempts are miscounted"
        self._check_choice(start, chosen=chosen, retries=retries, failed_over=failed_over)
        if self.play.state.workflow.plan(start.step).definition.delivery == "at_most_once":
            not_sent = any(not was_sent(retry.error) for retry in retries)
            not_sent = not_sent or any(not was_sent(event.error) for event in failed_over)
            assert not_sent or resolved or replied, "an at_most_once step was called twice"

    def _check_choice(
        self,
        start: StepStarted,
        *,
        chosen: bool,
        retries: list[StepRetryScheduled],
        failed_over: list[StepFailedOver],
    ) -> None:
        """What one agent may have is never given to another one, unless that does no harm."""
        if not self.play.state.workflow.plan(start.step).definition.repeatable:
            unclear = [each.error for each in failed_over if was_sent(each.error)]
            assert unclear == [], "another agent got what the first may have"
        if retries and not retries[-1].answered and was_sent(retries[-1].error):
            assert not chosen, "another agent got what the first may have"

    def _check_steps(self) -> None:
        state = self.play.state
        limit = state.workflow.max_parallel
        assert limit is None or state.in_flight <= limit, "more steps in flight than max_parallel"
        for name in [*state.workflow.steps, *state.steps]:
            status = self.play.step(name).status
            before = self._seen.get(name, "PENDING")
            if before in {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}:
                assert status == before, "a step left its final state"
            if name in state.workflow.steps and self.play.step(name).attempts:
                self._check_needs(name)
            self._seen[name] = status

    def _check_needs(self, name: str) -> None:
        plan = self.play.state.workflow.steps[name]
        branches = frozenset[str]() if plan.join is None else plan.join.branches
        ended = all(self.play.step(need).is_final for need in plan.needs if need not in branches)
        assert ended, "a step began before what it needs had ended"
        completed = sum(self.play.step(branch).status == "COMPLETED" for branch in branches)
        assert plan.join is None or completed >= plan.join.quorum, "a join began before enough had completed"

    def _check_wake_reasons(self) -> None:
        state, timers = self.play.state, self.play.timers
        waiting = {step.name: step.attempts for step in state.steps.values() if step.waits_for_events}
        awaited = {wait.step: wait.attempt for wait in self.waits.values()}
        assert awaited == waiting, "a step waits for events that will not come, or they come to nobody"
        self._check_taken_events()
        if state.is_final:
            assert timers == {}, "a finished run left a timer behind"
            return
        self._check_claims()
        for step in state.steps.values():
            number = 0 if step.route is None else step.route.number
            task = task_id(state.id, step.name, step.answered_failures, step.replies, number)
            key = task, step.attempts
            if step.status == "RUNNING" and step.name not in state.for_each:
                if not is_child(state.workflow.plan(step.name)):
                    assert key in self.open, "a step runs though no call is in flight"
                else:
                    child = child_run_of(state.id, state.workflow.plan(step.name), step)
                    assert child in self.open_runs, "a step runs though its child does not"
            if step.waiting_for is not None and step.waiting_for.kind == "time":
                assert wait_timer(step) in timers, "a sleep has no timer"
            if step.waiting_for is not None and step.waiting_for.kind == "retry":
                assert retry_timer(step) in timers, "a retry has no timer"
            self._check_route(step)
            self._check_human_task(step)
            self._check_reply_deadline(step)
            assert not (step.is_final and f"deadline/{step.name}" in timers), (
                "a step left its deadline behind"
            )
        if state.status == "RUNNING":
            assert state.in_flight or state.retrying or state.waiting_for_time_or_event, (
                "nothing will ever wake the run"
            )
        if state.status == "WAITING":
            assert (state.in_flight, state.retrying, state.waiting_for_time_or_event) == (0, 0, 0), (
                "the run waits though something goes on"
            )
            assert state.awaiting_person, "the run waits for nobody"
        if state.cancel_requested_at is not None:
            assert CANCEL_TIMER in timers, "a cancellation has no end"
        if state.workflow.deadline is not None and state.status != "PENDING":
            assert DEADLINE_TIMER in timers, "the deadline is forgotten"

    def _check_route(self, step: StepState) -> None:
        route, timers = step.route, self.play.timers
        hedging = [key for key in timers if key.startswith(f"hedge/{step.name}/")]
        assert len(hedging) <= (step.status == "RUNNING"), "a call that is not made would get company"
        if step.waiting_for is None or step.waiting_for.kind != "agent":
            assert not [key for key in timers if key.startswith(f"agent/{step.name}/")], "a wait has no end"
        else:
            assert route is not None, "a step looks for an agent without a route"
            is_sought = (step.name, route.lookups, False) in self.lookups
            assert is_sought or agent_timer(step) in timers, "a step waits for an agent that will not come"
        if route is not None and route.hedges:
            assert step.status == "RUNNING", "a call goes on without its step"
            for hedge in route.hedges:
                id_ = task_id(
                    self.play.state.id, step.name, step.answered_failures, step.replies, hedge.number
                )
                assert (id_, step.attempts) in self.open, "a call has gone that the step waits for"

    def _check_claims(self) -> None:
        """A step that waits for an output has asked for it; a claim belongs to a step that goes on."""
        timers = self.play.timers
        for step in self.play.state.steps.values():
            use = step.call_details.cache
            waits = step.waiting_for is not None and step.waiting_for.kind == "cache"
            assert waits == (use is not None and use.stage == "waiting"), "a step waits without a question"
            if waits:
                assert step.name in self.claims, "a step waits for an output that will not come"
                assert cache_timer(step) in timers, "a step would wait for ever"
            else:
                assert not [key for key in timers if key.startswith(f"cache/{step.name}/")], (
                    "a wait has no end"
                )
        for name in self.leading:
            use = self.play.step(name).call_details.cache
            assert use is not None, "others wait for a step that has not asked"
            assert use.is_claimed, "others wait for a step that does not work for them"

    def _check_taken_events(self) -> None:
        taken: list[Json] = []
        for step in self.play.state.steps.values():
            plan = self.play.state.workflow.plan(step.name)
            if plan.kind != "wait_for" or (plan.for_each is not None and step.name == plan.name):
                continue
            output = None if step.output is None else decode(step.output)
            held = output if step.waiting_for is None else step.waiting_for.data
            taken += held if isinstance(held, list) else [] if held is None else [held]
        identities = [event_identity(each) for each in taken]
        assert len({*identities}) == len(identities), "an event was taken twice"

    def _check_human_task(self, step: StepState) -> None:
        timers = {key for key in self.play.timers if key.startswith(f"escalation/{step.name}/")}
        task = None if step.waiting_for is None else step.waiting_for.human_task
        if task is None:
            assert timers == set(), "a task that is closed will be escalated"
            return
        expected = f"escalation/{step.name}/{step.attempts}/{task.escalated}"
        assert timers == ({expected} if task.next_escalation is not None else set()), "an escalation is lost"
        answered_by = [str(by) for by in task.answered_by]
        assert len({*answered_by}) == len(answered_by) < task.required, "an answer was counted wrongly"
        waits = wait_timer(step) in self.play.timers
        is_limited = step.waiting_for is not None and step.waiting_for.until is not None
        assert waits == is_limited, "a task and its timeout do not go together"

    def _check_reply_deadline(self, step: StepState) -> None:
        is_timed = f"reply/{step.name}/{step.attempts}/{step.replies}" in self.play.timers
        reply_timeout = self.play.state.workflow.plan(step.name).definition.reply_timeout
        asks = step.status == "WAITING" and step.waiting_for is not None and step.waiting_for.kind == "input"
        assert is_timed == (asks and reply_timeout is not None), (
            "a question and its deadline do not go together"
        )

    def _restored(self) -> RunState:
        state = msgspec.structs.replace(
            fresh_state(self.play.state.workflow, INPUT),
            **{field: getattr(self.play.state, field) for field in STORED_FIELDS},
            contexts=dict(self.play.state.contexts),
            unfinished=0,
        )
        steps = [msgspec.msgpack.decode(row, type=StepState) for row in self.stored.values()]
        restore(state, steps)
        return state


STORED_FIELDS = (
    "status", "version", "seq", "output", "error", "paused", "cancel_requested_at", "started_at", "finished_at",
)  # fmt: skip
COUNTERS = (
    "in_flight",
    "retrying",
    "waiting_for_time_or_event",
    "awaiting_person",
    "unfinished",
    "failure",
    "contexts",
)


def _broken(agent: Candidate) -> Candidate:
    return msgspec.structs.replace(agent, breaker_open=True)


def _waits(state: RunState, name: str) -> int:
    return count_waits(state.workflow.steps[name]) if name in state.workflow.steps else 0


def normal(state: RunState) -> dict[str, object]:
    """What two states must agree on: steps that nobody has touched may be there or not, and order is free."""
    steps = {
        name: step
        for name, step in state.steps.items()
        if step != StepState(name=name, remaining=_waits(state, name))
    }
    ready = {
        name
        for name in state.ready
        if (name not in state.steps or state.steps[name].status == "PENDING")
        and (name in state.workflow.steps or step_of_item(name) in state.for_each)
    }
    loops = {name: (it.items, it.active, it.finished, it.failed) for name, it in state.for_each.items()}
    fields = {field: getattr(state, field) for field in (*STORED_FIELDS, *COUNTERS)}
    return {**fields, "steps": steps, "ready": ready, "loops": loops}
