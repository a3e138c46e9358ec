"""Where Kafka is and how to log in, as options of librdkafka."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TypeAlias

import msgspec

Options: TypeAlias = dict[str, str | int | float | bool]

# What it would say of a broker that is away, over and over, we say once ourselves.
_ONLY_CRITICAL = 2
# A topic that was missing is looked for again after this long, not after five minutes.
_LOOK_FOR_TOPICS_MS = 10_000
_library_log = logging.getLogger("trunkline.kafka")


class KafkaConnection(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach one cluster. Never logged: it may hold a password."""

    # host:port, separated by commas.
    servers: str
    security_protocol: str = "plaintext"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    def __repr__(self) -> str:
        return f"KafkaConnection({self.servers!r})"

    def options(self, **own: str | float | bool) -> Options:
        """librdkafka's own names; `own` are the client's, with underscores for dots."""
        options = {
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": self.sasl_password,
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.cert_file,
            "ssl.key.location": self.key_file,
        }
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": self.security_protocol,
            **{name: str(value) for name, value in options.items() if value is not None},
            "client.id": "trunkline",
            "log_level": _ONLY_CRITICAL,
            "topic.metadata.refresh.interval.ms": _LOOK_FOR_TOPICS_MS,
            # A broker that comes back is noticed within a second.
            "reconnect.backoff.ms": 100,
            "reconnect.backoff.max.ms": 1_000,
            # One that hangs is given up before a minute has passed.
            "socket.timeout.ms": 10_000,
            "socket.connection.setup.timeout.ms": 5_000,
            **{name.replace("_", "."): value for name, value in own.items()},
        }


def library_log() -> logging.Logger:
    """Where the library's own lines go, instead of straight to stderr."""
    return _library_log
