"""The broker that tests, benchmarks and `make up-distributed` start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deploy.local.class_archive import write_class_archive
from deploy.local.errors import ServiceFailed, ServiceMissing
from deploy.local.jars import java
from deploy.local.kafka import class_archive, start_kafka
from deploy.local.processes import wait_until
from tests.services import needed, private_kafka, wait_for_futures

ROOT = Path(__file__).parents[2]
SECONDS = 60.0


def test_a_killed_broker_comes_back_at_the_same_address_with_its_records() -> None:
    with private_kafka() as kafka:
        servers = kafka.servers
        admin = AdminClient({"bootstrap.servers": servers})
        wait_for_futures(admin.create_topics([NewTopic("kept", 1)]))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures
        producer = Producer({"bootstrap.servers": servers, "acks": "all"})
        producer.produce("kept", b"still here")
        assert producer.flush(SECONDS) == 0
        kafka.kill()
        assert not kafka.running
        kafka.restart()
        assert kafka.servers == servers
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader"})
        consumer.assign([TopicPartition("kept", 0, 0)])
        record = consumer.poll(SECONDS)
        consumer.close()
        assert record is not None
        assert record.value() == b"still here"


@pytest.mark.skipif(sys.platform != "linux", reason="what another process has mapped is read from /proc")
def test_a_broker_maps_the_classes_that_another_one_has_written() -> None:
    with needed():
        write_class_archive()
    with private_kafka() as kafka:
        assert str(class_archive()) in Path(f"/proc/{kafka.pid}/maps").read_text()


def test_a_broker_whose_port_is_taken_says_so(tmp_path: Path, kafka_servers: str) -> None:
    taken = int(kafka_servers.rsplit(":", 1)[1])
    with pytest.raises(ServiceFailed, match=r"(?s)ended before it was ready.*BindException"):
        start_kafka(tmp_path, port=taken)


def test_a_broker_is_gone_when_the_process_that_started_it_is_killed(
    tmp_path: Path, kafka_servers: str
) -> None:
    program = (
        "import sys, pathlib, signal; from deploy.local.kafka import class_archive, start_kafka;"
        "print(start_kafka(pathlib.Path(sys.argv[1])).pid, flush=True); signal.pause()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as starter:
        assert starter.stdout is not None
        broker = int(starter.stdout.readline())
        assert is_alive(broker)
        starter.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not is_alive(broker), SECONDS)


def test_without_java_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ServiceMissing, match="install a JRE"):
        java()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
