"""Kafka with TLS and SASL: the right credentials are accepted, and wrong ones lead to distinct errors."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Coroutine, Generator
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.services import private_kafka

from trunkline.brokers.base import Producer, Undelivered
from trunkline.brokers.kafka import KafkaConnection, open_producer, open_source
from trunkline.brokers.kafka.topics import TopicPlan, check_topics, create_topics
from trunkline.errors import ConfigurationError, NotAllowed, Unavailable
from trunkline.messages import OutgoingMessage

pytestmark = pytest.mark.anyio

TIMEOUT_SECONDS = 90.0
PASSWORD = "canary-of-the-kafka-password"
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' user_trunkline="{PASSWORD}" user_guest="guest";'
)


class Certificate(NamedTuple):
    """One that has signed itself: its own authority."""

    pem: bytes
    key: bytes


def make_certificate() -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kafka")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(certificate.public_bytes(pem), private)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Generator[KafkaConnection]:
    folder: Path = tmp_path_factory.mktemp("tls")
    certificate = make_certificate()
    store, authority = folder / "server.pem", folder / "ca.pem"
    store.write_bytes(certificate.key + certificate.pem)
    authority.write_bytes(certificate.pem)
    properties = {
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(store),
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": LOGIN,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:trunkline",
    }
    with private_kafka(properties=properties, secure_protocol="SASL_SSL") as kafka:
        yield KafkaConnection(
            servers=kafka.secure_servers,
            security_protocol="sasl_ssl",
            sasl_mechanism="PLAIN",
            sasl_username="trunkline",
            sasl_password=PASSWORD,
            ca_file=authority,
        )


async def test_with_the_right_words_everything_works(connection: KafkaConnection) -> None:
    await create_topics(connection, ["tasks"], TopicPlan(2))
    assert await check_topics(connection, ["tasks"], partitions=2) == []
    async with (
        open_producer(connection) as producer,
        open_source(connection, group="g", topics=["tasks"]) as source,
        asyncio.timeout(TIMEOUT_SECONDS),
    ):
        while await _refused(producer.send([OutgoingMessage("tasks", "k", b"v")])):
            await asyncio.sleep(0.1)
        while not source.waiting(10):
            await asyncio.sleep(0.01)
        assert source.failure is None


async def _refused(sending: Coroutine[None, None, list[Undelivered]]) -> bool:
    try:
        return await sending != []
    except Unavailable:
        return True


@pytest.mark.parametrize("flaw", ["password", "authority", "protocol"])
async def test_a_wrong_setting_is_named_without_its_secrets(
    connection: KafkaConnection, tmp_path: Path, flaw: str, capfd: pytest.CaptureFixture[str]
) -> None:
    unknown_authority = tmp_path / "unknown_authority.pem"
    unknown_authority.write_bytes(make_certificate().pem)
    wrong, words = {
        "password": (
            msgspec.structs.replace(connection, sasl_password="wrong-canary"),
            "TRUNKLINE_KAFKA_SASL_PASSWORD",
        ),
        "authority": (
            msgspec.structs.replace(connection, ca_file=unknown_authority),
            "TRUNKLINE_KAFKA_CA_FILE",
        ),
        "protocol": (msgspec.structs.replace(connection, security_protocol="plaintext"), "cannot be reached"),
    }[flaw]
    (finding,) = await check_topics(wrong, ["tasks"])
    assert finding.problem == "unreachable"
    assert words in f"{finding.why} {finding.fix}"
    async with open_producer(wrong) as producer, open_source(wrong, group="g", topics=["tasks"]) as source:
        with pytest.raises(Unavailable) as caught:
            await producer.send([OutgoingMessage("tasks", "k", b"v")])
        assert words in f"{caught.value.message} {caught.value.fix}"
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while words not in (source.failure or ""):
                await asyncio.sleep(0.01)
    told = capfd.readouterr()
    assert "canary" not in f"{finding}{caught.value}{source.failure}{told.out}{told.err}"


async def test_an_authenticated_caller_without_rights_is_rejected_with_the_reason(
    connection: KafkaConnection,
) -> None:
    await create_topics(connection, ["tasks"], TopicPlan(2))
    guest = msgspec.structs.replace(connection, sasl_username="guest", sasl_password="guest")
    (finding,) = await check_topics(guest, ["tasks"])
    assert (finding.topic, finding.problem) == ("tasks", "not_allowed")
    with pytest.raises(NotAllowed):
        await create_topics(guest, ["others"], TopicPlan(1))
    async with open_producer(guest) as producer, open_source(guest, group="g", topics=["tasks"]) as source:
        # A second time too: the first refusal was the end of a client.
        for _ in range(2):
            assert "denied access" in await reason(producer)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while "denied access" not in (source.failure or ""):
                await asyncio.sleep(0.01)


async def reason(producer: Producer) -> str:
    """Why a message is not delivered, whether it is the message's fault or not."""
    try:
        (refused,) = await producer.send([OutgoingMessage("tasks", "k", b"v")])
    except Unavailable as exc:
        return exc.message
    return refused.reason


async def test_settings_that_make_no_sense_end_the_start(connection: KafkaConnection, tmp_path: Path) -> None:
    nowhere = msgspec.structs.replace(connection, ca_file=tmp_path / "nowhere.pem")
    with pytest.raises(ConfigurationError, match=r"ssl\.ca\.location"):
        async with open_producer(nowhere):
            pass
    async with open_source(nowhere, group="g", topics=["tasks"]) as source, asyncio.timeout(TIMEOUT_SECONDS):
        while "ssl.ca.location" not in (source.failure or ""):
            await asyncio.sleep(0.01)
