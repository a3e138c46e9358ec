"""The topics that the settings name, created and checked. Needs the library of the extra `kafka`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trunkline.brokers.kafka import topics
from trunkline.settings import Settings
from trunkline.wiring.kafka_messaging import kafka_connection


class TopicProblem(NamedTuple):
    """One thing that is wrong with the topics, or with the way to them."""

    # None: it is the same for all of them.
    topic: str | None
    problem: str
    why: str
    fix: str


def topic_names(settings: Settings, pools: Sequence[str] = ()) -> list[str]:
    """All that the processes of these settings use, and those of the pools."""
    names = settings.topics
    own = [settings.pool] if settings.pool is not None else []
    found = [names.tasks, *(names.tasks_of(pool) for pool in (*own, *pools))]
    found += [names.results, names.events, names.commands]
    # One that is not used has no name.
    return list(dict.fromkeys(name for name in found if name))


async def create_topics(settings: Settings, pools: Sequence[str] = ()) -> Mapping[str, str]:
    """What was done about each: `created`, `widened` or `unchanged`."""
    plan = topics.TopicPlan(settings.topic_partitions, settings.topic_replication, settings.topic_retention)
    return await topics.create_topics(kafka_connection(settings), topic_names(settings, pools), plan)


async def check_topics(settings: Settings, pools: Sequence[str] = ()) -> list[TopicProblem]:
    findings = await topics.check_topics(
        kafka_connection(settings), topic_names(settings, pools), partitions=settings.topic_partitions
    )
    return [TopicProblem(*finding) for finding in findings]
