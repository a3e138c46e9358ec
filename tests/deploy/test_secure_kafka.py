"""TLS and a login to Kafka, by the settings: a real broker that asks for both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.services import private_kafka

USER, PASSWORD = "trunkline", "an-open-secret"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure_servers(certificate: Path) -> Generator[str]:
    properties = {
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(certificate.with_name("both.pem")),
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f'{LOGIN} user_{USER}="{PASSWORD}";',
    }
    with private_kafka(properties=properties, secure_protocol="SASL_SSL") as kafka:
        yield kafka.secure_servers


def topics_create(servers: str, certificate: Path, **other: str) -> subprocess.CompletedProcess[str]:
    settings: Mapping[str, str] = {
        "TRUNKLINE_STORE": "postgresql://nobody@127.0.0.1:1/none",
        "TRUNKLINE_BROKER": f"kafka://{servers}",
        "TRUNKLINE_KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
        "TRUNKLINE_KAFKA_SASL_MECHANISM": "PLAIN",
        "TRUNKLINE_KAFKA_SASL_USERNAME": USER,
        "TRUNKLINE_KAFKA_SASL_PASSWORD": PASSWORD,
        "TRUNKLINE_KAFKA_CA_FILE": str(certificate),
        "TRUNKLINE_TOPIC_PARTITIONS": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "trunkline", "topics", "create", "--json"],
        env={**os.environ, **settings, **other},
        cwd=certificate.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_with_the_right_certificate_and_password_topics_are_made(
    secure_servers: str, certificate: Path
) -> None:
    done = topics_create(secure_servers, certificate)
    assert done.returncode == 0, done.stderr
    assert "trunkline.tasks" in json.dumps(json.loads(done.stdout))


def test_a_wrong_password_is_said_and_not_shown(secure_servers: str, certificate: Path) -> None:
    done = topics_create(secure_servers, certificate, TRUNKLINE_KAFKA_SASL_PASSWORD="guessed-it")
    assert done.returncode != 0
    assert "password" in done.stderr
    assert "guessed-it" not in done.stdout + done.stderr


def test_a_broker_with_a_foreign_certificate_gets_no_password(
    secure_servers: str, certificate: Path, tmp_path: Path
) -> None:
    done = topics_create(secure_servers, certificate, TRUNKLINE_KAFKA_CA_FILE=str(make_certificate(tmp_path)))
    assert done.returncode != 0
    assert "certificate" in done.stderr


def make_certificate(folder: Path) -> Path:
    """A certificate that signs itself; with its key in `both.pem` next to it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(secret + certificate)
    (folder / "certificate.pem").write_bytes(certificate)
    return folder / "certificate.pem"
