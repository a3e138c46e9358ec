"""
Gates: lets runs start that the flow control of their trigger or workflow holds back.

Such a run is accepted like every other one, and has a row in the queue of starts instead of its first queued input. The
transaction that decides about a gate writes that input for the runs that start, and a cancellation for those that
never will. The transaction that ends a run makes its gate due.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.machine.inputs import CancelRequested, RunRequested, encode_input
from trunkline.machine.state import RunState
from trunkline.services.runs.intake import START
from trunkline.stores.base import InputsQueued, NewRun, QueuedInput, Transaction
from trunkline.triggers.flow_control import GateDecision, decide_gate

# Each may have a thousand runs that wait.
_MAX_GATES_PER_TURN = 8
# Runs that other processes accept are found by this poll.
_LOOK_EVERY = timedelta(seconds=1)
_NOW = Instant(0)


class StartGates:
    """A part of the commit loop, before the driver: what it starts takes its first turn in the same commit."""

    def __init__(self) -> None:
        self._look_at = _NOW
        self._next: Instant | None = None

    def look(self) -> None:
        """A run has come to a gate."""
        self._look_at = self._next = _NOW

    async def begin(self, tx: Transaction, runs: Sequence[NewRun]) -> None:
        """Runs that were inserted start, or come to their gates."""
        inputs = [
            QueuedInput(run.id, START, encode_input(RunRequested())) for run in runs if run.start is None
        ]
        queued = [(run.id, run.start) for run in runs if run.start is not None]
        if queued:
            await tx.start_queue.put(queued)
            self.look()
        if inputs:
            await tx.input_queue.put(inputs)
        if runs:
            await tx.notify(InputsQueued())

    async def runs_ended(self, tx: Transaction, states: Iterable[RunState]) -> None:
        """The driver ends these runs: their gates are looked at in the next turn."""
        counted = [
            state.id for state in states if state.trigger or state.workflow.definition.flow is not None
        ]
        if counted and await tx.start_queue.runs_ended(counted):
            await tx.notify(InputsQueued())
            self.look()

    async def work(self, tx: Transaction) -> None:
        if self._look_at > tx.now:
            return
        due = await tx.start_queue.next_due()
        if due is not None and due <= tx.now:
            inputs: list[QueuedInput] = []
            for name, gate in (await tx.start_queue.claim(_MAX_GATES_PER_TURN)).items():
                decision = decide_gate(gate, tx.now)
                await tx.start_queue.settle(name, gate.policy, decision)
                inputs += _inputs(decision)
            if inputs:
                await tx.input_queue.put(inputs)
                await tx.notify(InputsQueued())
            due = await tx.start_queue.next_due()
        self._next = due
        self._look_at = after(tx.now, _LOOK_EVERY)
        if due is not None:
            self._look_at = min(self._look_at, due)

    def committed(self) -> None:
        """Nothing waits for it."""

    def rolled_back(self) -> None:
        self.look()

    def next_wake(self) -> Instant | None:
        return self._next


def _inputs(decision: GateDecision) -> list[QueuedInput]:
    start, cancel = encode_input(RunRequested()), encode_input(CancelRequested())
    return [
        *(QueuedInput(RunId(run_id), START, start) for run_id in decision.start),
        *(QueuedInput(RunId(run_id), "cancel", cancel) for run_id in decision.cancel),
        *(
            QueuedInput(RunId(run_id), "cancel", encode_input(CancelRequested(reason)))
            for run_id, reason in decision.drop.items()
        ),
    ]
