"""Making the topics, and finding out what is wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from time import monotonic, sleep
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar, cast

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from trunkline.brokers.kafka.connection import KafkaConnection, library_log
from trunkline.brokers.kafka.error_messages import (
    KafkaErrorText,
    describe,
    error_of,
    invalid_settings,
    is_unreachable,
    more_specific,
    names_no_topic,
)
from trunkline.errors import ConfigurationError, NotAllowed, Unavailable

if TYPE_CHECKING:
    from confluent_kafka.admin._topic import TopicDescription

_ANSWER_SECONDS = 5.0
# Topics are made by the controller, which may have to ask others.
_CHANGE_SECONDS = 30.0
_LOOK_EVERY_SECONDS = 0.05

_OF_THE_PLAN = frozenset({"INVALID_REPLICATION_FACTOR", "INVALID_PARTITIONS", "POLICY_VIOLATION"})

Made: TypeAlias = Literal["created", "widened", "unchanged"]
Answer = TypeVar("Answer")
Problem: TypeAlias = Literal["unreachable", "missing", "partitions", "not_allowed"]


class TopicPlan(NamedTuple):
    """What new topics are like."""

    partitions: int
    # -1: as the brokers are configured.
    replication: int = -1
    retention: timedelta = timedelta(days=7)


class TopicFinding(NamedTuple):
    """One thing that is wrong, or may become a problem, and what to do about it."""

    # None: it is the same for all of them.
    topic: str | None
    problem: Problem
    why: str
    fix: str

    @property
    def stops_work(self) -> bool:
        """With too few partitions it is only slower than it could be."""
        return self.problem != "partitions"


async def create_topics(
    connection: KafkaConnection, topics: Sequence[str], plan: TopicPlan
) -> dict[str, Made]:
    """
    Makes those that are missing and adds partitions to those that have too few; says which.

    Raises `Unavailable`, `NotAllowed` or `ConfigurationError`.
    """
    return await asyncio.to_thread(_ask, connection, lambda admin: admin.create(topics, plan))


async def check_topics(
    connection: KafkaConnection, topics: Sequence[str], *, partitions: int = 1
) -> list[TopicFinding]:
    """What is wrong with them, or with the way to them; nothing is changed."""
    return await asyncio.to_thread(_ask, connection, lambda admin: admin.check(topics, partitions))


async def delete_topics(connection: KafkaConnection, topics: Sequence[str]) -> None:
    """Deletes the topics that exist."""
    await asyncio.to_thread(_ask, connection, lambda admin: admin.delete(topics))


def _ask(connection: KafkaConnection, ask: Callable[[_TopicAdmin], Answer]) -> Answer:
    admin = _TopicAdmin(connection)
    # Not left to the garbage collector: where that works in a thread of the client's own, the library ends the process.
    with admin.client:
        return ask(admin)


class _TopicAdmin:
    """One look at the cluster, or one change; blocks."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._servers = connection.servers
        self._outage: KafkaError | None = None
        options = {**connection.options(), "error_cb": self._on_error}
        try:
            self.client = AdminClient(options, logger=library_log())  # pyright: ignore[reportArgumentType] - a callback is an option too
        except KafkaException as exc:
            raise invalid_settings(exc) from exc

    def create(self, topics: Sequence[str], plan: TopicPlan) -> dict[str, Made]:
        found = self._counts(topics)
        made: dict[str, Made] = dict.fromkeys(topics, "unchanged")
        missing = [topic for topic, partitions in found.items() if partitions == 0]
        narrow = [topic for topic, partitions in found.items() if 0 < partitions < plan.partitions]
        if missing:
            config = {"retention.ms": str(plan.retention // timedelta(milliseconds=1))}
            wanted = [NewTopic(topic, plan.partitions, plan.replication, config=config) for topic in missing]
            self._change(self.client.create_topics(wanted, request_timeout=_CHANGE_SECONDS))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures
            made.update(dict.fromkeys(missing, "created"))
        if narrow:
            more = [NewPartitions(topic, plan.partitions) for topic in narrow]
            self._change(self.client.create_partitions(more, request_timeout=_CHANGE_SECONDS))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures
            made.update(dict.fromkeys(narrow, "widened"))
        if missing or narrow:
            self._settle(lambda: min(self._counts(topics).values()) >= plan.partitions)
        return made

    def check(self, topics: Sequence[str], partitions: int) -> list[TopicFinding]:
        findings: list[TopicFinding] = []
        for topic, described in self._describe(topics).items():
            if isinstance(described, KafkaError):
                finding = self._finding(topic, described)
                if finding.topic is None:
                    return [finding]
                findings.append(finding)
            elif len(described.partitions) < partitions:
                findings.append(_too_few(topic, len(described.partitions), partitions))
        return findings

    def delete(self, topics: Sequence[str]) -> None:
        there = [topic for topic, partitions in self._counts(topics).items() if partitions]
        if there:
            self._change(self.client.delete_topics(there, request_timeout=_CHANGE_SECONDS))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures
            self._settle(lambda: not any(self._counts(there).values()))

    def _describe(self, topics: Sequence[str]) -> dict[str, TopicDescription | KafkaError]:
        futures = cast(
            "Mapping[str, Future[TopicDescription]]",
            self.client.describe_topics(TopicCollection(list(topics)), request_timeout=_ANSWER_SECONDS),  # pyright: ignore[reportUnknownMemberType] - the library's futures
        )
        found: dict[str, TopicDescription | KafkaError] = {}
        for topic, future in futures.items():
            try:
                found[topic] = future.result()
            except KafkaException as exc:
                found[topic] = error_of(exc)
        return found

    def _settle(self, is_done: Callable[[], bool]) -> None:
        """Until a change that the controller has made is known to the brokers too, or they take too long."""
        given_up = monotonic() + _CHANGE_SECONDS
        while not is_done() and monotonic() < given_up:
            sleep(_LOOK_EVERY_SECONDS)

    def _counts(self, topics: Sequence[str]) -> dict[str, int]:
        return {topic: self._partitions(topic, found) for topic, found in self._describe(topics).items()}

    def _partitions(self, topic: str, found: TopicDescription | KafkaError) -> int:
        """0: there is no such topic."""
        if not isinstance(found, KafkaError):
            return len(found.partitions)
        if names_no_topic(found):
            return 0
        raise self._refusal(found, topic)

    def _change(self, futures: Mapping[str, Future[object]]) -> None:
        for topic, future in futures.items():
            try:
                future.result()
            except KafkaException as exc:
                error = error_of(exc)
                # Another process was faster.
                if error.name() != "TOPIC_ALREADY_EXISTS":
                    raise self._refusal(error, topic) from exc

    def _finding(self, topic: str, error: KafkaError) -> TopicFinding:
        text = self._describe_error(error, topic)
        if names_no_topic(error):
            return TopicFinding(topic, "missing", text.what, text.fix)
        if is_unreachable(error):
            return TopicFinding(None, "unreachable", text.what, text.fix)
        return TopicFinding(topic, "not_allowed", text.what, text.fix)

    def _refusal(
        self, error: KafkaError, topic: str | None = None
    ) -> Unavailable | NotAllowed | ConfigurationError:
        text = self._describe_error(error, topic)
        if is_unreachable(error):
            return Unavailable(text.what, fix=text.fix)
        if error.name() in _OF_THE_PLAN:
            return ConfigurationError(
                text.what, fix="Correct TRUNKLINE_TOPIC_REPLICATION or TRUNKLINE_TOPIC_PARTITIONS."
            )
        if error.name() == "TOPIC_EXCEPTION":
            return ConfigurationError(text.what, fix=text.fix)
        return NotAllowed(text.what, fix=text.fix)

    def _describe_error(self, error: KafkaError, topic: str | None) -> KafkaErrorText:
        if is_unreachable(error):
            # What is known of the cause waits for a poll.
            self.client.poll(0)
            return describe(more_specific(error, self._outage or error), self._servers)
        return describe(error, self._servers, topic)

    def _on_error(self, error: KafkaError) -> None:
        self._outage = more_specific(self._outage, error)


def _too_few(topic: str, found: int, wanted: int) -> TopicFinding:
    return TopicFinding(
        topic,
        "partitions",
        f"The topic {topic} has {found} of {wanted} partitions, so at most {found} processes can consume it.",
        "trunkline topics create, or set TRUNKLINE_TOPIC_PARTITIONS to the intended number",
    )
