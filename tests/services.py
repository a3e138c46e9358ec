"""
A real Kafka, a real PostgreSQL and other people's agents for the tests, started when the first test asks for them.

All workers of a session share one of each (tests/shared_service.py). A test that kills a service takes a private one.
Where Java, Maven, PostgreSQL or the packages of an agent are missing, a test that needs them is skipped, or fails if CI
is set.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NoReturn, Protocol, cast

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deploy.local.errors import ServiceFailed, ServiceMissing
from deploy.local.folders import service_folder
from deploy.local.kafka import SHORT_SESSION, KafkaProcess, start_kafka
from deploy.local.postgres import PostgresCluster, PostgresServer, start_postgres
from deploy.local.processes import wait_until
from tests.shared_service import FAILURE, SESSION, STATE, USERS

from trunkline.messages import TopicNames
from trunkline.stores.migrations import upgrade_statements

_ROOT = Path(__file__).parents[1]
_TEMPLATE = "migrated"
# What all workers share keeps nothing beyond its session, and makes thousands of files in it: in memory each costs a
# fraction. A machine that has less to spare keeps them on its disk, and so does whoever names a folder in TMPDIR.
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES = 2 << 30
# Of each topic that a test uses.
PARTITIONS = 4
# Until the keepers have stopped their services.
_STOP_SECONDS = 60.0
_ADMIN_SECONDS = 60.0

_FOLDER = pytest.StashKey[Path]()
# Open as long as this process may use the services.
_held: list[IO[str]] = []
_keepers: list[subprocess.Popen[bytes]] = []


@contextmanager
def private_kafka(
    *, properties: Mapping[str, str] | None = None, secure_protocol: str | None = None
) -> Generator[KafkaProcess]:
    """A broker that the test may kill."""
    with service_folder("kafka") as folder, needed():
        settings = {**SHORT_SESSION, **(properties or {})}
        with start_kafka(folder / "kafka", properties=settings, secure_protocol=secure_protocol) as kafka:
            yield kafka


@contextmanager
def private_postgres(
    *, fsync: bool = True, settings: Mapping[str, str] | None = None
) -> Generator[PostgresCluster]:
    """A cluster that the test may crash; `url("migrated")` is a database with the tables."""
    with (
        service_folder("postgres") as folder,
        needed(),
        start_postgres(folder / "postgres", fsync=fsync, settings=settings) as cluster,
    ):
        _create_template(cluster)
        yield cluster


@pytest.fixture(scope="session")
def kafka_servers(request: pytest.FixtureRequest) -> str:
    return str(shared("kafka", request.config)["servers"])


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    return PostgresServer(port=int(shared("postgres", request.config)["port"]), password=None)


@contextmanager
def fresh_database(server: PostgresServer, template: str = _TEMPLATE) -> Generator[str]:
    """The address of a new database with the tables, or with all that is in another one."""
    name = f"test_{secrets.token_hex(8)}"
    server.create_database(name, template=template)
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Generator[str]:
    """A database of this test alone, with the tables."""
    with fresh_database(postgres) as url:
        yield url


@pytest.fixture(scope="session")
def kafka_admin(kafka_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka_servers})


@contextmanager
def fresh_topic_prefix(admin: AdminClient) -> Generator[str]:
    prefix = f"test-{secrets.token_hex(6)}."
    try:
        yield prefix
    finally:
        topics = admin.list_topics(timeout=_ADMIN_SECONDS).topics
        made = [name for name in topics if name.startswith(prefix)]
        if made:
            wait_for_futures(admin.delete_topics(made))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures


@contextmanager
def fresh_topics(admin: AdminClient) -> Generator[TopicNames]:
    """New topics; deleted afterwards."""
    with fresh_topic_prefix(admin) as prefix:
        names = TopicNames(
            tasks=f"{prefix}tasks",
            results=f"{prefix}results",
            events=f"{prefix}events",
            commands=f"{prefix}commands",
        )
        wanted = [
            NewTopic(name, PARTITIONS) for name in (names.tasks, names.results, names.events, names.commands)
        ]
        wait_for_futures(admin.create_topics(wanted))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures
        # The controller has made them; the broker hears of them a moment later.
        assert wait_until(lambda: all(_is_known(admin, topic.topic) for topic in wanted), _ADMIN_SECONDS)
        yield names


def backend_variables(store: str, servers: str, topics: TopicNames) -> dict[str, str]:
    """The environment of a distributed system that uses them."""
    return {
        "TRUNKLINE_STORE": store,
        "TRUNKLINE_BROKER": f"kafka://{servers}",
        "TRUNKLINE_TASKS_TOPIC": topics.tasks,
        "TRUNKLINE_RESULTS_TOPIC": topics.results,
        "TRUNKLINE_EVENTS_TOPIC": topics.events,
        "TRUNKLINE_KAFKA_GROUP": topics.tasks,
        "TRUNKLINE_TOPIC_PARTITIONS": str(PARTITIONS),
    }


def _is_known(admin: AdminClient, topic: str) -> bool:
    found = admin.list_topics(topic, timeout=_ADMIN_SECONDS).topics[topic]
    return found.error is None and all(part.leader >= 0 for part in found.partitions.values())


@pytest.fixture
def topic_prefix(kafka_admin: AdminClient) -> Generator[str]:
    """What the names of this test's topics begin with; all of them are deleted afterwards."""
    with fresh_topic_prefix(kafka_admin) as prefix:
        yield prefix


@pytest.fixture
def topics(kafka_admin: AdminClient) -> Generator[TopicNames]:
    """Topics of this test alone, with four partitions each."""
    with fresh_topics(kafka_admin) as names:
        yield names


def wait_for_futures(futures: Mapping[str, Future[object]]) -> None:
    for future in futures.values():
        future.result(_ADMIN_SECONDS)


class _XdistNode(Protocol):
    workerinput: dict[str, str]
    config: pytest.Config


def pytest_configure(config: pytest.Config) -> None:
    given = cast("dict[str, str] | None", getattr(config, "workerinput", None))
    if given is not None:
        config.stash[_FOLDER] = Path(given["services"])
        return
    session = ExitStack()
    config.add_cleanup(session.close)
    folder = session.enter_context(service_folder("test", parent=_memory()))
    session.callback(_leave, folder)
    (folder / SESSION).write_text(str(os.getpid()))
    config.stash[_FOLDER] = folder


def _memory() -> Path | None:
    if "TMPDIR" in os.environ:
        return None
    spacious = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _MEMORY_BYTES
    return _MEMORY if spacious and os.access(_MEMORY, os.W_OK) else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _XdistNode) -> None:
    node.workerinput["services"] = str(node.config.stash[_FOLDER])


def _leave(folder: Path) -> None:
    """At the end of the session, when the workers are gone: nothing is left running."""
    while _held:
        _held.pop().close()
    assert wait_until(lambda: not list(folder.glob(f"*/{STATE}")), _STOP_SECONDS), "A service does not stop"
    for keeper in _keepers:
        keeper.wait(_STOP_SECONDS)


@contextmanager
def needed() -> Generator[None]:
    """Skips the test when a service is missing that it needs; lets it fail where CI is set."""
    try:
        yield
    except ServiceMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


def shared(kind: str, config: pytest.Config) -> dict[str, str | int]:
    """What its keeper tells of the service; starts it if nobody has."""
    folder = config.stash[_FOLDER] / kind
    folder.mkdir(mode=0o755, exist_ok=True)
    with needed(), (folder / "starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        users = (folder / USERS).open("w")
        _held.append(users)
        # Waits for a keeper that is just stopping the service.
        fcntl.flock(users, fcntl.LOCK_SH)
        state, failure = folder / STATE, folder / FAILURE
        if not state.exists() and not failure.exists():
            told = _start_keeper(kind, folder)
            (failure if told.keys() & {"missing", "failed"} else state).write_text(json.dumps(told))
        if failure.exists():
            _raise_failure(json.loads(failure.read_text()))
        return json.loads(state.read_text())


def _start_keeper(kind: str, folder: Path) -> dict[str, str | int]:
    with (folder / "keeper.log").open("ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.shared_service", kind, str(folder)],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    _keepers.append(keeper)
    assert keeper.stdout is not None
    with keeper.stdout as stdout:
        line = stdout.readline()
    if not line:
        return {"failed": f"The keeper of {kind} ended:\n{(folder / 'keeper.log').read_text()}"}
    told = cast("dict[str, str | int]", json.loads(line))
    if "port" in told:
        _create_template(PostgresServer(port=int(told["port"]), password=None))
    return told


def _raise_failure(told: dict[str, str]) -> NoReturn:
    if "missing" in told:
        raise ServiceMissing(told["missing"])
    raise ServiceFailed(told["failed"])


def _create_template(server: PostgresServer) -> None:
    server.create_database(_TEMPLATE)
    server.execute(f"BEGIN;\n{upgrade_statements('postgresql', None)}\nCOMMIT;", _TEMPLATE)
