"""
Whether a consumer can reach its topics, and if not, why.

The library reports when something breaks, not when it works again, so this probes while something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException

from trunkline.brokers.kafka.error_messages import (
    NO_TOPIC,
    describe,
    error_of,
    is_unreachable,
    kind_of,
    missing_topic,
    more_specific,
    names_no_topic,
)
from trunkline.telemetry import log_events

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata

log = structlog.stdlib.get_logger()

_ASK_EVERY_SECONDS = 1.0
_ANSWER_SECONDS = 1.0

# Errors of one broker among several, or of a late poll. The library recovers on its own.
_TRANSIENT = frozenset({"_TRANSPORT", "_MAX_POLL_EXCEEDED", "_PARTITION_EOF"})
# The topics can be seen, and the group refuses us all the same.
_OF_THE_GROUP = frozenset({"GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"})


def no_answer_yet(servers: str) -> str:
    return f"Kafka at {servers} has not answered yet"


class ConsumerHealth:
    """Used by the polling thread alone; `report_failure` gets the failure whenever it changes."""

    def __init__(
        self, servers: str, topics: Sequence[str], report_failure: Callable[[str | None], None]
    ) -> None:
        self._servers = servers
        self._topics = topics
        self._report_failure = report_failure
        self._outage: KafkaError | None = None
        # Until the first answer nothing is known to work.
        self._failure: str | None = no_answer_yet(servers)
        self._kind = ""
        self._refused = False
        self._ask_at = 0.0

    @property
    def is_broken(self) -> bool:
        return self._failure is not None

    def report_error(self, error: KafkaError, topic: str | None = None) -> None:
        if is_unreachable(error):
            self._outage = more_specific(self._outage, error)
        if error.name() in _TRANSIENT and self._kind != kind_of(error):
            return
        self._refused = error.name() in _OF_THE_GROUP
        cause = self._outage if self._outage is not None and is_unreachable(error) else error
        self._set(kind_of(cause), describe(cause, self._servers, topic).text)

    def report_success(self) -> None:
        self._outage = None
        self._refused = False
        if self._failure is not None:
            if self._kind:
                log.info(log_events.BROKER_AVAILABLE)
            self._failure, self._kind = None, ""
            self._report_failure(None)

    def probe(self, consumer: Consumer) -> None:
        """Asks whether it works again, if there is reason to, at most every second."""
        if self._failure is None or self._refused or monotonic() < self._ask_at:
            return
        self._ask_at = monotonic() + _ASK_EVERY_SECONDS
        try:
            metadata: ClusterMetadata = consumer.list_topics(timeout=_ANSWER_SECONDS)
        except KafkaException as exc:
            # It says less than what led to it.
            if self._outage is None:
                self.report_error(error_of(exc))
            return
        self._judge(metadata)

    def _judge(self, metadata: ClusterMetadata) -> None:
        for topic in self._topics:
            found = metadata.topics.get(topic)
            if found is None or (found.error is not None and names_no_topic(found.error)):
                self._set(NO_TOPIC, missing_topic(topic).text)
                return
        self.report_success()

    def _set(self, kind: str, failure: str) -> None:
        if kind != self._kind:
            log.error(log_events.BROKER_UNAVAILABLE, error=failure)
        self._kind = kind
        if failure != self._failure:
            self._failure = failure
            self._report_failure(failure)
