"""What librdkafka is told about the cluster, and that a password is shown to nobody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trunkline.brokers.kafka import KafkaConnection

WITHOUT_THE_LIBRARY = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "confluent_kafka" else find(name, *rest)
from trunkline.errors import ConfigurationError
try:
    import trunkline.brokers.kafka
except ConfigurationError as error:
    print(error.message, error.fix)
"""


def test_a_plain_connection_names_its_servers_and_no_secrets() -> None:
    options = KafkaConnection(servers="a:9092,b:9092").options()
    assert options["bootstrap.servers"] == "a:9092,b:9092"
    assert options["security.protocol"] == "plaintext"
    assert not [name for name in options if name.startswith(("sasl.", "ssl."))]


def test_sasl_and_tls_are_passed_in_the_librarys_words() -> None:
    connection = KafkaConnection(
        servers="a:9093",
        security_protocol="sasl_ssl",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="trunkline",
        sasl_password="canary",
        ca_file=Path("ca.pem"),
        cert_file=Path("cert.pem"),
        key_file=Path("key.pem"),
    )
    options = connection.options()
    assert {name: options[name] for name in options if name.startswith(("sasl.", "ssl.", "security."))} == {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "trunkline",
        "sasl.password": "canary",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "cert.pem",
        "ssl.key.location": "key.pem",
    }
    assert "canary" not in f"{connection!r} {connection}"


def test_a_client_s_own_options_win() -> None:
    options = KafkaConnection(servers="a:9092").options(client_id="x", linger_ms=2)
    assert (options["client.id"], options["linger.ms"]) == ("x", 2)


def test_without_the_library_the_error_names_the_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_LIBRARY], capture_output=True, text=True, check=True
    )
    assert "confluent-kafka" in done.stdout
    assert 'pip install "trunkline[kafka]"' in done.stdout
