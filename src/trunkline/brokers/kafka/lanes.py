"""
Records between their arrival and their settling.

A lane is one partition for as long as it is ours. Used by the event loop alone; what others may read are counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from trunkline.messages import BrokerRecord


class Lane:
    """One partition, from its assignment to its revocation."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self._unsettled: dict[int, BrokerRecord] = {}
        self._end = 0

    def add(self, record: BrokerRecord) -> None:
        self._unsettled[record.offset] = record
        self._end = record.offset + 1

    def settle(self, record: BrokerRecord) -> None:
        self._unsettled.pop(record.offset, None)

    def unsettled(self) -> Sequence[BrokerRecord]:
        return list(self._unsettled.values())

    @property
    def committable(self) -> int:
        """Everything before this offset is settled."""
        return next(iter(self._unsettled), self._end)


class WaitingRecords:
    """All that wait, in the order in which they came."""

    def __init__(self) -> None:
        # By identity: a topic that was made anew has other records under the same offsets.
        self._records: dict[int, tuple[BrokerRecord, Lane]] = {}
        # How many, and how many bytes, have left so far.
        self.gone = 0
        self.gone_bytes = 0

    def arrive(self, arrivals: Sequence[tuple[Lane, BrokerRecord]]) -> None:
        for lane, record in arrivals:
            lane.add(record)
            self._records[id(record)] = (record, lane)

    def first(self, limit: int) -> list[BrokerRecord]:
        return [record for record, _ in islice(self._records.values(), limit)]

    def settle(self, records: Sequence[BrokerRecord]) -> set[Lane]:
        """The lanes that have moved; records whose lane is gone are none of ours."""
        moved: set[Lane] = set()
        for record in records:
            lane = self._leave(record)
            if lane is not None:
                lane.settle(record)
                moved.add(lane)
        return moved

    def drop(self, lane: Lane) -> None:
        """The partition is not ours any more: whoever has it gets its records again."""
        for record in lane.unsettled():
            self._leave(record)

    def _leave(self, record: BrokerRecord) -> Lane | None:
        found = self._records.pop(id(record), None)
        if found is None:
            return None
        self.gone += 1
        self.gone_bytes += size_of(record)
        return found[1]


def size_of(record: BrokerRecord) -> int:
    return len(record.value or b"")
