"""
A running system for each scenario, or one for a whole file; every scenario runs on every set of backends.

The backends are chosen as a user chooses them, by TRUNKLINE_STORE and TRUNKLINE_BROKER, so whatever a scenario starts,
in this process or another, is on them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from deploy.local.postgres import PostgresServer
from tests.services import backend_variables, fresh_database, fresh_topics

from trunkline.testing import RunningSystem, running_system

EMBEDDED = "embedded"
DISTRIBUTED = "kafka+postgres"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # Every test has the backend's environment, whether it asks for a system or starts one by itself.
    metafunc.parametrize("backend", _backends_of(metafunc.definition), scope="module", indirect=True)


def _backends_of(test: pytest.Item) -> Sequence[str]:
    if test.get_closest_marker("embedded_only"):
        return [EMBEDDED]
    return [DISTRIBUTED] if test.get_closest_marker("distributed_only") else [EMBEDDED, DISTRIBUTED]


@pytest.fixture(scope="module", autouse=True)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def _distributed(request: pytest.FixtureRequest) -> Generator[Mapping[str, str]]:
    postgres: PostgresServer = request.getfixturevalue("postgres")
    admin: AdminClient = request.getfixturevalue("kafka_admin")
    servers: str = request.getfixturevalue("kafka_servers")
    with (
        fresh_database(postgres) as url,
        fresh_topics(admin) as topics,
        pytest.MonkeyPatch.context() as patch,
    ):
        variables = backend_variables(url, servers, topics)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables


@pytest.fixture(autouse=True)
def backend_settings(backend: str, request: pytest.FixtureRequest) -> Generator[Mapping[str, str]]:
    """An empty store and topics of this test's own: the variables that name them."""
    if backend == EMBEDDED:
        yield {}
    elif "shared_settings" in request.fixturenames:
        yield request.getfixturevalue("shared_settings")
    else:
        with _distributed(request) as variables:
            yield variables


@pytest.fixture
async def system(backend_settings: Mapping[str, str], tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path / "data") as running:
        yield running


@pytest.fixture(scope="module")
def shared_settings(backend: str, request: pytest.FixtureRequest) -> Generator[Mapping[str, str]]:
    """The same for every test of a file."""
    if backend == EMBEDDED:
        yield {}
        return
    with _distributed(request) as variables:
        yield variables


@pytest.fixture(scope="module")
async def shared_system(
    shared_settings: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[RunningSystem]:
    """The same for every test of a file: what one of them does to it, the next one would notice."""
    async with running_system(tmp_path_factory.mktemp("shared") / "data") as running:
        yield running
