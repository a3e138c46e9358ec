"""Records between their arrival and their settling: an offset moves only over what is settled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.brokers.kafka.partitions import AssignedPartition, PendingRecords
from trunkline.messages import BrokerRecord


def record(offset: int, partition: int = 0, value: bytes = b"v") -> BrokerRecord:
    return BrokerRecord(topic="t", partition=partition, offset=offset, key=None, value=value)


def test_records_wait_in_the_order_in_which_they_came_until_they_are_settled() -> None:
    waiting, one, two = PendingRecords(), AssignedPartition("t", 0), AssignedPartition("t", 1)
    records = [record(0), record(0, 1), record(1)]
    waiting.arrive([(one, records[0]), (two, records[1]), (one, records[2])])
    assert waiting.first(2) == records[:2]
    assert waiting.first(2) == records[:2]
    assert waiting.settle(records[:2]) == {one, two}
    assert waiting.first(10) == records[2:]


def test_an_offset_does_not_pass_a_record_that_is_not_settled() -> None:
    waiting, lane = PendingRecords(), AssignedPartition("t", 0)
    records = [record(offset) for offset in range(5, 9)]
    waiting.arrive([(lane, each) for each in records])
    waiting.settle([records[0], records[2], records[3]])
    assert lane.committable == 6
    waiting.settle([records[1]])
    assert lane.committable == 9


def test_what_is_dropped_is_gone_and_settles_nothing() -> None:
    waiting, lane = PendingRecords(), AssignedPartition("t", 0)
    kept = record(1)
    waiting.arrive([(lane, kept)])
    waiting.drop(lane)
    assert waiting.first(10) == []
    assert waiting.settle([kept]) == set()


def test_a_record_of_a_recreated_topic_is_another_one_with_the_same_offset() -> None:
    waiting, old, new = PendingRecords(), AssignedPartition("t", 0), AssignedPartition("t", 0)
    before, after = record(3), record(3)
    waiting.arrive([(old, before)])
    waiting.drop(old)
    waiting.arrive([(new, after)])
    assert waiting.settle([before]) == set()
    assert waiting.first(10) == [after]
    assert new.committable == 3


def test_what_has_left_is_counted_with_its_bytes() -> None:
    waiting, lane = PendingRecords(), AssignedPartition("t", 0)
    records = [record(0, value=b"four"), record(1, value=b"seven77")]
    waiting.arrive([(lane, each) for each in records])
    waiting.settle(records[:1])
    waiting.drop(lane)
    assert (waiting.gone, waiting.gone_bytes) == (2, 11)


@given(st.permutations(range(8)), st.integers(0, 8))
def test_every_offset_below_the_committable_one_is_settled(order: list[int], number: int) -> None:
    waiting, lane = PendingRecords(), AssignedPartition("t", 0)
    records = [record(offset) for offset in range(8)]
    waiting.arrive([(lane, each) for each in records])
    settled = order[:number]
    waiting.settle([records[offset] for offset in settled])
    assert set(range(lane.committable)) <= set(settled)
    assert lane.committable not in settled
