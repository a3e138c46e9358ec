"""A broker that does everything a broker may do: deliver late, twice, in any order, or not at all."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from trunkline.brokers.base import Producer, RecordSource, Undelivered
from trunkline.messages import BrokerRecord, OutgoingMessage

_LONGEST_DELAY = 0.6


class UnreliableProducer:
    """Sends in any order, and some of it twice."""

    def __init__(self, inner: Producer, chance: random.Random) -> None:
        self._inner = inner
        self._chance = chance

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        twice = [message for message in messages if self._chance.random() < 0.3]
        everything = [*messages, *twice]
        self._chance.shuffle(everything)
        return await self._inner.send(everything)


class LossyProducer:
    """Says that everything has arrived; some of it has not."""

    def __init__(self, inner: Producer, loses: Callable[[OutgoingMessage], bool]) -> None:
        self._inner = inner
        self._loses = loses
        self.lost = 0

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        kept = [message for message in messages if not self._loses(message)]
        self.lost += len(messages) - len(kept)
        return await self._inner.send(kept)


class UnreliableSource:
    """Shows records late, in any order, twice at once, and again long after they were settled."""

    def __init__(self, inner: RecordSource, chance: random.Random) -> None:
        self._inner = inner
        self._chance = chance
        self._due: dict[int, float] = {}
        self._old: list[BrokerRecord] = []
        self._again: list[BrokerRecord] = []
        self._notify: Callable[[], None] | None = None

    @property
    def failure(self) -> str | None:
        return self._inner.failure

    def on_arrival(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._inner.on_arrival(notify)

    def waiting(self, limit: int) -> Sequence[BrokerRecord]:
        shown = [record for record in self._inner.waiting(1_000_000) if self._is_due(record)]
        shown += self._again
        if limit > 1:
            shown += [record for record in shown if self._chance.random() < 0.2]
            self._chance.shuffle(shown)
        return shown[:limit]

    def settle(self, records: Sequence[BrokerRecord]) -> None:
        self._inner.settle(records)
        settled = {id(record) for record in records}
        self._again = [record for record in self._again if id(record) not in settled]
        self._old += [record for record in records if self._chance.random() < 0.3]
        while self._old and self._chance.random() < 0.2:
            self._again.append(self._old.pop(self._chance.randrange(len(self._old))))

    def _is_due(self, record: BrokerRecord) -> bool:
        now = asyncio.get_running_loop().time()
        if id(record) not in self._due:
            delay = self._chance.choice((0.0, 0.0, self._chance.uniform(0.0, _LONGEST_DELAY)))
            self._due[id(record)] = now + delay
            if delay and self._notify is not None:
                asyncio.get_running_loop().call_later(delay + 0.01, self._notify)
        return self._due[id(record)] <= now
