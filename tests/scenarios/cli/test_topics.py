"""Topics from the command line: made before the first server, and checked with findings that name their fix."""

from __future__ import annotations

import json
import os
import subprocess
from typing import NamedTuple

import pytest
from tests.forked_program import trunkline_command

# What these commands talk to is Kafka itself.
pytestmark = pytest.mark.embedded_only


class Result(NamedTuple):
    code: int
    out: str
    err: str


def topics(*arguments: str, **environment: str) -> Result:
    done = subprocess.run(
        [*trunkline_command(), "topics", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def settings(kafka_servers: str, topic_prefix: str) -> dict[str, str]:
    return {
        "TRUNKLINE_BROKER": f"kafka://{kafka_servers}",
        "TRUNKLINE_TASKS_TOPIC": f"{topic_prefix}tasks",
        "TRUNKLINE_RESULTS_TOPIC": f"{topic_prefix}results",
        "TRUNKLINE_EVENTS_TOPIC": "",
        "TRUNKLINE_TOPIC_PARTITIONS": "2",
    }


def test_topics_are_checked_made_and_checked_again(settings: dict[str, str], topic_prefix: str) -> None:
    names = [f"{topic_prefix}{name}" for name in ("tasks", "tasks.gpu", "tasks.cpu", "results")]
    pools = ("--pool", "gpu", "--pool", "cpu")
    before = topics("check", *pools, "--json", **settings)
    assert before.code == 7
    items = json.loads(before.out)["items"]
    assert [(item["topic"], item["problem"]) for item in items] == [(name, "missing") for name in names]
    assert all("trunkline topics create" in item["fix"] for item in items)
    made = topics("create", *pools, "--json", **settings)
    assert (made.code, made.err) == (0, "")
    assert json.loads(made.out)["items"] == [{"topic": name, "result": "created"} for name in names]
    after = topics("check", *pools, **settings)
    assert (after.code, after.out) == (0, "")
    assert all(name in after.err for name in names)


def test_too_few_partitions_are_found_and_added(settings: dict[str, str]) -> None:
    assert topics("create", **settings).code == 0
    more = {**settings, "TRUNKLINE_TOPIC_PARTITIONS": "3"}
    narrow = topics("check", **more)
    assert narrow.code == 7
    assert "2 of 3 partitions" in narrow.out
    widened = json.loads(topics("create", "--json", **more).out)["items"]
    assert {item["result"] for item in widened} == {"widened"}
    assert topics("check", **more).code == 0


def test_a_kafka_that_is_away_is_named_with_what_to_do(settings: dict[str, str]) -> None:
    away = {**settings, "TRUNKLINE_BROKER": "kafka://127.0.0.1:9"}
    checked = topics("check", "--json", **away)
    assert checked.code == 6
    (finding,) = json.loads(checked.out)["items"]
    assert "127.0.0.1:9" in finding["why"]
    made = topics("create", **away)
    assert made.code == 6
    assert "127.0.0.1:9" in made.err
    assert "fix: " in made.err


def test_without_kafka_there_are_no_topics() -> None:
    for command in ("create", "check"):
        refused = topics(command)
        assert refused.code == 7
        assert "TRUNKLINE_BROKER=kafka://" in refused.err
