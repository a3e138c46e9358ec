"""One Kafka broker that is its own controller (KRaft), for one machine and few clients."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import signal
import socket
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.local.errors import ServiceFailed
from deploy.local.jars import java, kafka_jars
from deploy.local.ports import free_port
from deploy.local.processes import ServiceProcess

# A cold start on a busy machine takes ten times the three seconds of a quiet one.
START_SECONDS = 90.0
STOP_SECONDS = 20.0
_FORMAT_SECONDS = 90.0
# Another program may take a port between our look at it and the broker's start.
_PORT_ATTEMPTS = 5
_PORT_TAKEN = ("BindException", "Address already in use", "Address in use")

# For a JVM that lives for seconds: less compiling, less memory, no files in /tmp.
_QUICK = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
)

_PROPERTIES = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # A group of one test does not wait for more members to come.
    "group.initial.rebalance.delay.ms": "0",
    # No record twice a second for other controllers, of which there are none.
    "metadata.max.idle.interval.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "4194304",
    # A topic that is deleted is gone at once.
    "log.segment.delete.delay.ms": "100",
    "file.delete.delay.ms": "100",
}

# A broker that was killed comes back when its session is over. For one that is killed in a test; one that must not
# lose its place on a busy machine needs the usual nine seconds, or more.
SHORT_SESSION = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "3000"}


class KafkaProcess:
    """A running broker; made by `start_kafka`."""

    def __init__(
        self, folder: Path, *, place: KafkaPlace, heap: str, quick: bool, write_classes: Path | None
    ) -> None:
        self._folder = folder
        self._place = place
        archiving = [] if write_classes is None else [f"-XX:ArchiveClassesAtExit={write_classes}"]
        self._command = [
            *_jvm(heap, quick=quick),
            *archiving,
            f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.xml')}",
            "kafka.Kafka",
            str(_properties_file(folder)),
        ]
        self._process = self._start()

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._place.plain}"

    @property
    def secure_servers(self) -> str:
        """The listener that `secure_protocol` asked for."""
        return f"127.0.0.1:{self._place.secure}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.running

    @property
    def log(self) -> Path:
        return self._process.log

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP and SIGCONT: a broker that hangs, and comes back."""
        self._process.signal(number)

    def kill(self) -> None:
        """As by a power cut of the process alone: what it has written to the kernel stays."""
        self._process.end(signal.SIGKILL, STOP_SECONDS)

    def stop(self) -> None:
        self._process.end(signal.SIGTERM, STOP_SECONDS)

    def restart(self) -> None:
        """Runs it again at the same address with what is in its folder; kills it first if it runs."""
        self.kill()
        self._process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> ServiceProcess:
        process = ServiceProcess(self._command, self._folder / "kafka.log", env={"KAFKA_HEAP_OPTS": ""})
        process.wait_until(lambda: answers(self._place), START_SECONDS, "Kafka")
        return process


class KafkaPlace:
    def __init__(self, plain: int | None, *, node: int | None, with_secure: bool) -> None:
        # Drawn, so that a broker that has got our port first is not taken for ours.
        self.node = node or random.randrange(1, 1_000_000_000)  # noqa: S311 - no secret
        self.plain = plain or free_port()
        self.controller = free_port()
        self.secure = free_port() if with_secure else None


def start_kafka(
    folder: Path,
    *,
    port: int | None = None,
    heap: str = "256m",
    properties: Mapping[str, str] | None = None,
    secure_protocol: str | None = None,
    quick: bool = True,
    write_classes: Path | None = None,
) -> KafkaProcess:
    """
    A broker that is ready, with its data, settings and log in `folder`.

    `properties` add to the broker's settings or replace them. `secure_protocol` (SSL, SASL_PLAINTEXT, SASL_SSL) adds
    a listener named SECURE, to be set up by `listener.name.secure.…`. `quick` is for a short life: a benchmark wants
    the JVM's better compiler. `write_classes`: the file that gets its classes when it stops (`class_archive.py`).
    Raises `ServiceMissing` or `ServiceFailed`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        place = KafkaPlace(port, node=_node_of(folder), with_secure=secure_protocol is not None)
        _write_properties(folder, place, secure_protocol, properties or {})
        _format(folder)
        try:
            return KafkaProcess(folder, place=place, heap=heap, quick=quick, write_classes=write_classes)
        except ServiceFailed as failure:
            collided = any(words in str(failure) for words in _PORT_TAKEN)
            if not collided or port is not None or attempt == _PORT_ATTEMPTS:
                raise
    raise AssertionError  # the last attempt returns or raises


def answers(place: KafkaPlace) -> bool:
    """Whether our broker says there that it is part of its cluster, which it does when it takes requests."""
    # Metadata v1 for no topics: length, key 3, version 1, correlation id 7, no client id, an empty list.
    request = struct.pack(">ihhihi", 14, 3, 1, 7, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", place.plain), timeout=2) as connection:
            connection.sendall(request)
            head = connection.recv(16, socket.MSG_WAITALL)
    except OSError:
        return False
    # Length, correlation id, how many brokers there are, and the first one's id.
    return len(head) == 16 and struct.unpack(">iiii", head)[2:] == (1, place.node)


def class_archive() -> Path:
    """Where the classes of a broker are, as this JVM maps them into its memory; they may not be there."""
    # The JVM takes no classes that another one has written, or that come from other jars.
    written_for = hashlib.sha256(f"{java()} {kafka_jars()}".encode()).hexdigest()[:12]
    return kafka_jars().with_name(f"kafka-classes-{written_for}.jsa")


def _jvm(heap: str, *, quick: bool) -> list[str]:
    flags = _QUICK if quick else ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")
    if quick and class_archive().exists():
        flags = (*flags, f"-XX:SharedArchiveFile={class_archive()}")
    return [java(), *flags, f"-Xms{heap}", f"-Xmx{heap}", "-cp", f"{kafka_jars()}{os.sep}*"]


def _properties_file(folder: Path) -> Path:
    return folder / "server.properties"


def _write_properties(
    folder: Path, place: KafkaPlace, secure_protocol: str | None, more: Mapping[str, str]
) -> None:
    listeners = [f"PLAINTEXT://127.0.0.1:{place.plain}", f"CONTROLLER://127.0.0.1:{place.controller}"]
    protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"]
    if secure_protocol is not None:
        listeners.append(f"SECURE://127.0.0.1:{place.secure}")
        protocols.append(f"SECURE:{secure_protocol}")
    settings = {
        **_PROPERTIES,
        "node.id": str(place.node),
        "controller.quorum.voters": f"{place.node}@127.0.0.1:{place.controller}",
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(protocols),
        "log.dirs": str(folder / "data"),
        **more,
    }
    file = _properties_file(folder)
    file.touch(mode=0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


def _node_of(folder: Path) -> int | None:
    """Whose data is in the folder, if any."""
    file = folder / "data" / "meta.properties"
    lines = file.read_text().splitlines() if file.exists() else []
    return next((int(line.removeprefix("node.id=")) for line in lines if line.startswith("node.id=")), None)


def _format(folder: Path) -> None:
    if _node_of(folder) is not None:
        return
    # 16 bytes in base64; one that begins with a dash would be read as an option.
    cluster = "T" + base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")[1:]
    options = ["format", "--config", str(_properties_file(folder)), "--cluster-id", cluster]
    try:
        formatting = subprocess.run(  # noqa: S603 - Kafka's own tool
            [*_jvm("64m", quick=True), "kafka.tools.StorageTool", *options],
            capture_output=True,
            text=True,
            timeout=_FORMAT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise ServiceFailed(f"Kafka's folder is not formatted within {_FORMAT_SECONDS:.0f} s.") from exc
    if formatting.returncode != 0:
        raise ServiceFailed(
            f"Kafka's folder cannot be formatted:\n{formatting.stdout}{formatting.stderr}".rstrip()
        )
