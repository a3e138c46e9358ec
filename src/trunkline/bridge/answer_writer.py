"""
`AnswerWriter`, a part of the bridge's commit loop: writes what agent calls brought, and publishes their results.

Calls themselves run elsewhere (`calls/active_calls.py`); nothing here waits for an agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import structlog

from trunkline.bridge.activity import with_call_times
from trunkline.bridge.calls.active_calls import ActiveCalls
from trunkline.bridge.calls.results import CallExchanges, CallProgress, CallResult
from trunkline.brokers.base import Broker
from trunkline.clock import Instant
from trunkline.jsontypes import encode
from trunkline.messages import AgentTask
from trunkline.stores.base import TaskAnswer, Transaction
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# A task that is larger does not keep its input when it is done: the step has it.
_LARGE_TASK_BYTES = 64 * 1024


class CallObserver(Protocol):
    """Learns from how calls have ended, in the transaction that writes their answers."""

    async def note(self, tx: Transaction, results: Sequence[CallResult]) -> None: ...

    def committed(self) -> None: ...

    def rolled_back(self) -> None:
        """What was noted will be noted again."""
        ...


class AnswerWriter:
    """A part of the commit loop, before the driver: an answer is applied in the turn that stores it."""

    def __init__(
        self, broker: Broker[Transaction], calls: ActiveCalls, owner: str, *observers: CallObserver
    ) -> None:
        self._broker = broker
        self._calls = calls
        self._owner = owner
        self._observers = observers
        self._in_transaction = 0
        # The last commit may have happened though we were told that it failed.
        self._commit_uncertain = False

    async def work(self, tx: Transaction) -> None:
        # More may come while this waits for the store.
        updates = self._calls.updates.copy()
        self._in_transaction = len(updates)
        if not updates:
            return
        answered = [update for update in updates if not isinstance(update, CallExchanges)]
        # Only the last answer of a task is written; what was reported before it is for the executor.
        answers = {update.claim.key: self._stored_answer(update) for update in answered}
        lost = await tx.tasks.write_answers(self._owner, list(answers.values()))
        for key in lost:
            log.warning(log_events.ANSWER_TOO_LATE, task_id=key.task_id, attempt=key.attempt)
        # After a turn that seemed to fail, what is not ours any more may have been written by it.
        written = lost if self._commit_uncertain else ()
        await tx.exchanges.put(
            [
                exchange
                for update in updates
                if not isinstance(update, CallProgress) and update.claim.key not in written
                for exchange in update.exchanges
            ]
        )
        results = [each.result for each in answered if each.result is not None and each.claim.key not in lost]
        if results:
            await self._broker.publish_results(tx, results)
        ended = [
            update for update in updates if isinstance(update, CallResult) and update.claim.key not in written
        ]
        for observer in self._observers:
            await observer.note(tx, ended)

    def _stored_answer(self, update: CallProgress | CallResult) -> TaskAnswer:
        """The answer to write, with its times, and with the result where the broker may lose it."""
        answer, result, claim = with_call_times(update), update.result, update.claim
        if claim.payload_bytes > _LARGE_TASK_BYTES:
            payload = encode(_without_input(claim.task)) if answer.new_status == "done" else None
            answer = msgspec.structs.replace(answer, payload=payload, task_bytes=claim.payload_bytes)
        if result is None or result.status == "progress" or self._broker.hands_over_in_transaction:
            return answer
        return msgspec.structs.replace(answer, result=encode(result))

    def committed(self) -> None:
        self._calls.discard_written(self._in_transaction)
        self._in_transaction = 0
        self._commit_uncertain = False
        for observer in self._observers:
            observer.committed()

    def rolled_back(self) -> None:
        self._in_transaction = 0
        self._commit_uncertain = True
        for observer in self._observers:
            observer.rolled_back()

    def next_wake(self) -> Instant | None:
        return None


def _without_input(task: AgentTask) -> AgentTask:
    """What is still needed of a task that is done: its agent may have to be told that its answer is not awaited."""
    told = sorted({*task.told_secrets, *task.secrets.values()})
    return msgspec.structs.replace(task, input_data=None, message=None, secrets={}, told_secrets=told)
