"""
The driver: loads runs with queued inputs, lets the machine decide, and writes the transitions, in one transaction.

It does not know agents or HTTP; tasks leave through the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

import structlog

from trunkline.brokers.base import Broker, TaskMessage
from trunkline.clock import Instant, seconds_between
from trunkline.executor.candidate_lookup import CandidateLookup
from trunkline.executor.child_runs import ChildRuns
from trunkline.executor.event_triggers import EventTriggers
from trunkline.executor.input_sources import Timers
from trunkline.executor.output_cache import OutputCache
from trunkline.executor.run_changes import report_turns
from trunkline.executor.run_state_cache import RunStateCache
from trunkline.executor.schedules import Schedules
from trunkline.executor.start_gates import StartGates
from trunkline.executor.waits import write_event_waits, write_task_lists
from trunkline.ids import RunId
from trunkline.machine.decide import abandon, decide
from trunkline.machine.effects import (
    AwaitEvents,
    CancelTimer,
    ClaimOutput,
    DispatchTask,
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
from trunkline.machine.events import encode_event
from trunkline.machine.inputs import decode_input, encode_input
from trunkline.machine.state import OutputUnread, RunState
from trunkline.machine.turn import Turn
from trunkline.messages import AgentTask, CancelTask, OutgoingMessage, StepError, fix_for
from trunkline.messages.cloudevents import event_message
from trunkline.services.callbacks.task_updates import put_task_updates
from trunkline.services.runs.watchers import RunWatchers
from trunkline.services.subscriptions.reporter import ChangeReporter
from trunkline.stores.base import EventRecord, RunsChanged, Timer, Transaction, Transition, WokenRun
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces, TraceSpan

log = structlog.stdlib.get_logger()

# Bounds the time for which one transaction holds the writer.
MAX_INPUTS_PER_TURN = 512

_NOW = Instant(0)


class RunDriver:
    """A part of the commit loop."""

    def __init__(
        self,
        broker: Broker[Transaction],
        states: RunStateCache,
        children: ChildRuns,
        timers: Timers,
        watchers: RunWatchers,
        metrics: Metrics,
        candidates: CandidateLookup,
        outputs: OutputCache | None = None,
        *,
        schedules: Schedules | None = None,
        event_triggers: EventTriggers | None = None,
        changes: ChangeReporter | None = None,
        gates: StartGates | None = None,
        traces: Traces | None = None,
        events_topic: str = "",
        reply_timeout: timedelta | None = None,
        max_run_bytes: int | None = None,
    ) -> None:
        self._broker = broker
        self._timers = timers
        self._states = states
        self._children = children
        self._schedules = schedules
        self._event_triggers = event_triggers
        self._changes = changes
        self._gates = gates
        self._candidates = candidates
        self._outputs = outputs or OutputCache()
        self._watchers = watchers
        self._metrics = metrics
        # The topic on which run events are published for other systems; empty: none.
        self._events_topic = events_topic
        # How long an agent's question waits where its step does not say; None: without limit.
        self._reply_timeout = reply_timeout
        self._max_run_bytes = max_run_bytes
        self._traces = traces or Traces()
        self._turns: list[Turn] = []
        # This turn's transitions of runs that callers have started.
        self._published: list[Transition] = []
        self._has_put_updates = False
        self._call_after_updates: Callable[[], None] = lambda: None
        # The runs that are over with them.
        self._ended: dict[RunId, RunState] = {}
        # Of the dispatches in this turn's transaction; they end when it has committed.
        self._segments: list[TraceSpan] = []
        self._more = False

    def on_task_updates(self, call: Callable[[], None]) -> None:
        """`call`: after a turn that has put callbacks with updates of callers' tasks."""
        self._call_after_updates = call

    async def work(self, tx: Transaction) -> None:
        self._turns, self._ended, self._published = [], {}, []
        self._has_put_updates = False
        woken = await tx.input_queue.claim_runs(MAX_INPUTS_PER_TURN)
        self._more = sum(len(run.items) for run in woken) == MAX_INPUTS_PER_TURN
        if not woken:
            return
        states = await self._states.load(tx, woken)
        transitions: list[Transition] = []
        messages: list[TaskMessage] = []
        for run in woken:
            state = states.get(run.run_id)
            if state is not None:
                turn, transition = await self._decide(tx, run, state)
                self._turns.append(turn)
                transitions.append(transition)
        moved = await tx.runs.write_transitions(transitions)
        self._turns = [turn for turn in self._turns if turn.state.id not in moved]
        if self._published:
            written = [each for each in self._published if each.state.id not in moved]
            self._has_put_updates = await put_task_updates(tx, written)
        self._ended = {turn.state.id: turn.state for turn in self._turns if turn.state.is_final}
        for transition in transitions:
            self._timers.expect(transition.timers)
        # Runs that this turn has not claimed have something to take in.
        children = await self._children.write(tx, self._turns)
        waits = await write_event_waits(tx, self._turns)
        sought = await self._candidates.write(tx, self._turns)
        looked_up = await self._outputs.write(tx, self._turns)
        await write_task_lists(tx, self._turns)
        if children or waits or sought or looked_up:
            self._more = True
        if self._ended:
            await self._note_ends(tx)
        for turn in self._turns:
            messages.extend(_messages(turn))
        if self._traces.are_on:
            self._trace(messages)
        if messages:
            await self._broker.publish_tasks(tx, messages)
        await self._report(tx, transitions, moved)
        await tx.notify(RunsChanged([turn.state.id for turn in self._turns], list(self._ended)))

    async def _report(
        self, tx: Transaction, transitions: Sequence[Transition], moved: Collection[RunId]
    ) -> None:
        """To other systems."""
        if self._changes is not None:
            await report_turns(tx, self._changes, self._turns)
        if self._events_topic:
            await tx.outbox.put(_event_messages(self._events_topic, transitions, moved))

    async def _note_ends(self, tx: Transaction) -> None:
        # That a run's work was undone later is not another end.
        ended = [state for state in self._ended.values() if not state.has_ended_before]
        triggers = {state.trigger for state in ended if state.trigger}
        if triggers and self._schedules is not None:
            await self._schedules.runs_ended(tx, triggers)
        if self._event_triggers is not None:
            await self._event_triggers.runs_ended(tx, ended)
        if self._gates is not None:
            await self._gates.runs_ended(tx, ended)

    def _trace(self, messages: Sequence[TaskMessage]) -> None:
        for task in messages:
            if isinstance(task, AgentTask):
                segment = self._traces.begin(
                    f"dispatch {task.step}",
                    "PRODUCER",
                    task.trace,
                    {
                        "gen_ai.agent.name": task.agent,
                        "trunkline.run_id": task.run_id,
                        "trunkline.step": task.step,
                        "trunkline.attempt": task.attempt,
                    },
                )
                task.trace = segment.trace
                self._segments.append(segment)

    async def _decide(self, tx: Transaction, run: WokenRun, state: RunState) -> tuple[Turn, Transition]:
        version = state.version
        wanted: frozenset[str] = frozenset()
        while True:
            try:
                inputs = [decode_input(item) if isinstance(item, bytes) else item for _, item in run.items]
                turn = decide(
                    state, inputs, tx.now, reply_timeout=self._reply_timeout, max_bytes=self._max_run_bytes
                )
            except OutputUnread as unread:
                # Rarely twice: then the outputs that it needs are not known before they are read.
                outputs_of = None if wanted else unread.steps
                wanted |= unread.steps
                state = await self._states.load_with(tx, run.run_id, outputs_of)
                continue
            except Exception:
                log.exception(log_events.RUN_POISONED, run_id=run.run_id, correlation_id=state.correlation_id)
                turn = await self._poisoned(tx, run)
            break
        turn.state.version = version + 1
        transition = _transition(turn, version, [row for row, _ in run.items])
        if state.message is not None:
            self._published.append(transition)
        return turn, transition

    async def _poisoned(self, tx: Transaction, run: WokenRun) -> Turn:
        """The run as it was, ended: a decision that fails once would always fail."""
        state = (await self._states.load(tx, [run]))[run.run_id]
        message = "Trunkline could not decide how to continue this run."
        error = StepError(code="internal_error", message=message, fix=fix_for("internal_error"))
        return abandon(state, error, tx.now)

    def committed(self) -> None:
        self._children.committed()
        for turn in self._turns:
            self._states.keep(turn.state)
            self._count_steps(turn)
        for state in self._ended.values():
            self._count_end(state)
        if self._turns:
            self._watchers.notify([turn.state.id for turn in self._turns], self._ended)
        self._turns, self._ended = [], {}
        if self._has_put_updates:
            self._call_after_updates()
        for segment in self._segments:
            segment.end()
        self._segments = []

    def rolled_back(self) -> None:
        self._children.rolled_back()
        # The states have changed in memory only: they are dropped, and will be read again.
        self._turns, self._ended = [], {}
        # Without an end they are not exported.
        self._segments = []
        self._more = False

    def next_wake(self) -> Instant | None:
        return _NOW if self._more else None

    def _count_steps(self, turn: Turn) -> None:
        for step in turn.changed.values():
            if step.finished_at is not None and step.started_at is not None and step.is_final:
                self._metrics.step_seconds.labels(step.status).observe(
                    seconds_between(step.started_at, step.finished_at)
                )

    def _count_end(self, state: RunState) -> None:
        if state.block is not None or state.has_ended_before:
            # A part of a run that will be counted, or one that was.
            return
        self._metrics.runs_finished.labels(state.status).inc()
        log.info(
            log_events.RUN_FINISHED,
            run_id=state.id,
            correlation_id=state.correlation_id,
            workflow=state.workflow.definition.name,
            status=state.status,
        )


def _transition(turn: Turn, version: int, applied: Sequence[int]) -> Transition:
    state = turn.state
    seq = state.seq - len(turn.events)
    events: list[EventRecord] = []
    for event in turn.events:
        seq += 1
        events.append(EventRecord(seq, type(event).__name__, turn.now, encode_event(event)))
    timers: list[Timer] = []
    dropped: list[str] = []
    for effect in turn.effects:
        if isinstance(effect, StartTimer):
            timers.append(Timer(state.id, effect.key, effect.due, encode_input(effect.item)))
        elif isinstance(effect, CancelTimer):
            dropped.append(effect.key)
    return Transition(
        state=state,
        expected_version=version,
        changed_steps=list(turn.changed.values()),
        events=events,
        applied=applied,
        timers=timers,
        dropped_timers=dropped,
    )


def _event_messages(
    topic: str, transitions: Sequence[Transition], moved: Collection[RunId]
) -> list[OutgoingMessage]:
    return [
        event_message(
            topic,
            run_id=transition.state.id,
            workflow=transition.state.workflow.definition.name,
            seq=event.seq,
            event_type=event.type,
            at=event.at,
            data=event.data,
        )
        for transition in transitions
        if transition.state.id not in moved
        for event in transition.events
    ]


def _agent_of(state: RunState, task_id: str) -> str:
    # A task's id is made of the run, the step and a number.
    return state.workflow.plan(task_id.split("/")[1]).agent


def _messages(turn: Turn) -> list[TaskMessage]:
    messages: list[TaskMessage] = []
    for effect in turn.effects:
        match effect:
            case DispatchTask(task):
                messages.append(task)
            case StopTask(task_id, attempt, agent):
                agent = agent or _agent_of(turn.state, task_id)
                messages.append(
                    CancelTask(task_id=task_id, attempt=attempt, run_id=turn.state.id, agent=agent)
                )
            case (
                StartChildRun()
                | SendRunInput()
                | StartTimer()
                | CancelTimer()
                | AwaitEvents()
                | StopAwaitingEvents()
                | FindCandidates()
                | ClaimOutput()
                | KeepOutput()
                | ReleaseOutput()
                | ListTask()
                | UnlistTask()
            ):
                pass
    return messages
