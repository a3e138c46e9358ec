"""
Assigned partitions, and their records between arrival and settling.

Only the event loop uses them; the consumer thread reads the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from trunkline.messages import BrokerRecord


class AssignedPartition:
    """One partition, from its assignment to its revocation."""

    def __init__(self, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
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


class PendingRecords:
    """The records that are not settled, in the order of their arrival."""

    def __init__(self) -> None:
        # By identity: a recreated topic has other records under the same offsets.
        self._records: dict[int, tuple[BrokerRecord, AssignedPartition]] = {}
        # How many records, and bytes, have left so far.
        self.gone = 0
        self.gone_bytes = 0

    def arrive(self, arrivals: Sequence[tuple[AssignedPartition, BrokerRecord]]) -> None:
        for partition, record in arrivals:
            partition.add(record)
            self._records[id(record)] = (record, partition)

    def first(self, limit: int) -> list[BrokerRecord]:
        return [record for record, _ in islice(self._records.values(), limit)]

    def settle(self, records: Sequence[BrokerRecord]) -> set[AssignedPartition]:
        """The partitions whose offset advanced; ignores records of partitions that were revoked."""
        advanced: set[AssignedPartition] = set()
        for record in records:
            partition = self._leave(record)
            if partition is not None:
                partition.settle(record)
                advanced.add(partition)
        return advanced

    def drop(self, partition: AssignedPartition) -> None:
        """The partition was revoked: its next owner gets the records again."""
        for record in partition.unsettled():
            self._leave(record)

    def _leave(self, record: BrokerRecord) -> AssignedPartition | None:
        found = self._records.pop(id(record), None)
        if found is None:
            return None
        self.gone += 1
        self.gone_bytes += size_of(record)
        return found[1]


def size_of(record: BrokerRecord) -> int:
    return len(record.value or b"")
