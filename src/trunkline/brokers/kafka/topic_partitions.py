"""
To which partition of its topic a message goes.

The producer's own choice follows from the key. Ours needs to know how many partitions there are, asks once for each
topic, and leaves it to the key where it is not known.
"""

from __future__ import annotations

from time import monotonic

from confluent_kafka import KafkaException, Producer

from trunkline.messages import ANY_PARTITION, OutgoingMessage

_BY_KEY = -1
_ANSWER_SECONDS = 0.5
# Partitions are added seldom, and those that were there before stay.
_ASK_AGAIN_SECONDS = 60.0


class TopicPartitions:
    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._known_until = 0.0
        # The same for all messages of a batch.
        self._turn = 0

    def begin_batch(self) -> None:
        self._turn += 1
        if monotonic() > self._known_until:
            self.forget()

    def forget(self) -> None:
        self._counts.clear()
        self._known_until = monotonic() + _ASK_AGAIN_SECONDS

    def of(self, client: Producer, message: OutgoingMessage) -> int:
        """The number that the library takes: of a partition, or for the one that the key leads to."""
        if message.partition is None:
            return _BY_KEY
        count = self._counts.get(message.topic)
        if count is None:
            count = self._counts[message.topic] = _count(client, message.topic)
        if message.partition == ANY_PARTITION and count:
            return self._turn % count
        return message.partition if 0 <= message.partition < count else _BY_KEY


def _count(client: Producer, topic: str) -> int:
    """0: not known, for example because the topic is missing."""
    try:
        found = client.list_topics(topic, timeout=_ANSWER_SECONDS).topics.get(topic)
    except KafkaException:
        return 0
    return 0 if found is None or found.error is not None else len(found.partitions)
