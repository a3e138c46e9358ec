"""Several processes are one system: they share a key for the agents' secrets, and may call the tests' own agents."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping

import pytest
from tests.scenarios.distributed.topic_records import TopicReader

from trunkline.messages import TopicNames


@pytest.fixture(autouse=True)
def shared_secrets(
    backend_settings: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("TRUNKLINE_SECRET_KEY", urlsafe_b64encode(secrets.token_bytes(32)).decode())
    monkeypatch.setenv("TRUNKLINE_ALLOWED_NETWORKS", "127.0.0.0/8")
    # Nothing is kept there.
    monkeypatch.setenv("TRUNKLINE_DATA", str(tmp_path_factory.mktemp("data")))


@pytest.fixture
def kafka(backend_settings: Mapping[str, str], kafka_servers: str) -> TopicReader:
    tasks = backend_settings["TRUNKLINE_TASKS_TOPIC"]
    names = TopicNames(
        tasks=tasks,
        results=backend_settings["TRUNKLINE_RESULTS_TOPIC"],
        events=backend_settings["TRUNKLINE_EVENTS_TOPIC"],
        commands=f"{tasks.removesuffix('tasks')}commands",
    )
    return TopicReader(kafka_servers, names)


@pytest.fixture
def commands(kafka: TopicReader, monkeypatch: pytest.MonkeyPatch) -> str:
    """The topic whose messages start runs, for whatever is started from here on."""
    monkeypatch.setenv("TRUNKLINE_COMMANDS_TOPIC", kafka.topics.commands)
    return kafka.topics.commands
