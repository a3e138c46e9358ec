"""
How far the consumers of the topics are behind: the ends of the partitions against what their groups have settled.

Asked with a consumer that joins nothing. The library's admin client asks for offsets too, and with it ends the process
when the coordinator of the group has just moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from trunkline.brokers.base import ConsumerGroup, Lag
from trunkline.brokers.kafka.connection import KafkaConnection, library_log
from trunkline.brokers.kafka.error_messages import (
    describe,
    error_of,
    invalid_settings,
    is_unreachable,
    missing_topic,
    more_specific,
    names_no_topic,
)
from trunkline.errors import ConfigurationError, Unavailable

# For all requests together, and for each one. A person waits for the page that shows the lag.
_LOOK_SECONDS = 3.0
_ANSWER_SECONDS = 1.5
_SHORTEST_SECONDS = 0.1
# As long as the page's own pause: what one page shows is new each time, and many ask Kafka no more often than one.
_FRESH_SECONDS = 5.0


class KafkaLag:
    """Looks when it is asked, every five seconds at most, with connections that end with the look."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._looking = asyncio.Lock()
        self._asked: Sequence[ConsumerGroup] = ()
        self._found: Sequence[Lag] = ()
        self._stale_at = 0.0

    async def query(self, groups: Sequence[ConsumerGroup]) -> Sequence[Lag]:
        """Of each of them, within seconds; where Kafka does not answer, why."""
        async with self._looking:
            now = monotonic()
            if groups != self._asked or now >= self._stale_at:
                self._found = await asyncio.to_thread(_look, self._connection, groups)
                self._asked, self._stale_at = groups, now + _FRESH_SECONDS
            return self._found


def _look(connection: KafkaConnection, groups: Sequence[ConsumerGroup]) -> Sequence[Lag]:
    until = monotonic() + _LOOK_SECONDS
    found: list[Lag] = []
    try:
        for group in groups:
            found.append(_LagQuery(connection, group, until).lag())  # noqa: PERF401 - those before a failure stay
    except (Unavailable, ConfigurationError) as exc:
        # It is the same for those that are left.
        found += [Lag(group, None, None, f"{exc.message} {exc.fix}") for group in groups[len(found) :]]
    return found


class _LagQuery:
    """At one group; blocks. Raises `Unavailable` or `ConfigurationError`."""

    def __init__(self, connection: KafkaConnection, group: ConsumerGroup, until: float) -> None:
        self._servers = connection.servers
        self._group = group
        self._until = until
        self._outage: KafkaError | None = None
        options = connection.options(group_id=group.name, enable_auto_commit=False)
        try:
            self._consumer = Consumer({**options, "error_cb": self._on_error, "logger": library_log()})
        except KafkaException as exc:
            raise invalid_settings(exc) from exc

    def lag(self) -> Lag:
        try:
            places = self._places()
            settled = self._answered(self._consumer.committed(places, timeout=self._seconds()))
            # After that, or a group that works could be beyond an end.
            beginnings, ends = self._offsets(places, OFFSET_BEGINNING), self._offsets(places, OFFSET_END)
        except KafkaException as exc:
            return self._unknown(error_of(exc))
        finally:
            self._consumer.close()
        return Lag(self._group, sum(map(_waiting, settled, beginnings, ends)), len(places))

    def _places(self) -> list[TopicPartition]:
        topic = self._group.topic
        found = self._consumer.list_topics(topic, timeout=self._seconds()).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return [TopicPartition(topic, number) for number in sorted(found.partitions)]

    def _offsets(self, places: Sequence[TopicPartition], which: int) -> list[int]:
        asked = [TopicPartition(place.topic, place.partition, which) for place in places]
        return self._answered(self._consumer.offsets_for_times(asked, timeout=self._seconds()))

    def _answered(self, places: Sequence[TopicPartition]) -> list[int]:
        for place in places:
            if place.error is not None:
                raise KafkaException(place.error)
        return [place.offset for place in sorted(places)]

    def _seconds(self) -> float:
        return min(max(self._until - monotonic(), _SHORTEST_SECONDS), _ANSWER_SECONDS)

    def _unknown(self, error: KafkaError) -> Lag:
        group = self._group
        if names_no_topic(error):
            return Lag(group, None, None, missing_topic(group.topic, group.pool).text)
        if not is_unreachable(error):
            return Lag(group, None, None, describe(error, self._servers, group.topic).text)
        # What is known of the cause waits for a poll.
        self._consumer.poll(0)
        text = describe(more_specific(error, self._outage or error), self._servers)
        raise Unavailable(text.what, fix=text.fix)

    def _on_error(self, error: KafkaError) -> None:
        self._outage = more_specific(self._outage, error)


def _waiting(settled: int, first: int, end: int) -> int:
    # As consumers do: a group that has settled nothing, or what the topic has no longer, starts at its beginning.
    start = settled if first <= settled <= end else first
    return max(end - start, 0)
