"""Kafka's errors as messages for operators: what is wrong, and how to fix it."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException

from trunkline.errors import ConfigurationError

# By name: the library keeps the numbers of its own codes to itself.
_NO_TOPIC = frozenset({"_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION"})
_NOT_LOGGED_IN = frozenset(
    {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"}
)
_NOT_ALLOWED = frozenset(
    {"TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"}
)
_TOO_LARGE = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"})
# The request is valid, but no broker answered it.
_UNREACHABLE = frozenset(
    {
        "_ALL_BROKERS_DOWN",
        "_TRANSPORT",
        "_RESOLVE",
        "_SSL",
        "_TIMED_OUT",
        "_MSG_TIMED_OUT",
        "_PURGE_QUEUE",
        "_PURGE_INFLIGHT",
        "_FATAL",
        "_WAIT_COORD",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "BROKER_NOT_AVAILABLE",
        "COORDINATOR_NOT_AVAILABLE",
    }
)


NO_TOPIC = "no topic"
_CORRECT_SETTINGS = "Correct the TRUNKLINE_KAFKA_… settings."
# Of an error that says why the brokers cannot be reached, where others only say that they cannot.
_SPECIFIC = 2


def error_of(exc: KafkaException) -> KafkaError:
    found: object = exc.args[0] if exc.args else None
    return found if isinstance(found, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(exc))


def names_no_topic(error: KafkaError) -> bool:
    return error.name() in _NO_TOPIC


def is_unreachable(error: KafkaError) -> bool:
    """The brokers cannot be reached, or reject our credentials. This affects every message."""
    return error.name() in _UNREACHABLE or error.name() in _NOT_LOGGED_IN


def more_specific(known: KafkaError | None, newer: KafkaError) -> KafkaError:
    """Of two errors about the same outage, the one that says more about its cause; the newer of two alike."""
    return newer if known is None or _specificity(newer) >= _specificity(known) else known


def _specificity(error: KafkaError) -> int:
    if error.fatal() or error.name() in _NOT_LOGGED_IN | _NOT_ALLOWED | {"_SSL", "_RESOLVE"}:
        return _SPECIFIC
    return 1 if error.name() == "_TRANSPORT" else 0


class KafkaErrorText(NamedTuple):
    what: str
    fix: str

    @property
    def text(self) -> str:
        return f"{self.what} {self.fix}"


def invalid_settings(exc: KafkaException) -> ConfigurationError:
    """A client cannot even be made."""
    return ConfigurationError(
        f"The Kafka settings are invalid: {error_of(exc).str().rstrip('.')}.", fix=_CORRECT_SETTINGS
    )


def kind_of(error: KafkaError) -> str:
    """Equal for errors that are the same news to a person."""
    if names_no_topic(error):
        return NO_TOPIC
    return "away" if is_unreachable(error) and _specificity(error) < _SPECIFIC else error.name()


def missing_topic(topic: str, pool: str | None = None) -> KafkaErrorText:
    of_pool = "" if pool is None else f" --pool {pool}"
    return KafkaErrorText(f"Kafka has no topic {topic}.", f"Create it with: trunkline topics create{of_pool}")


def describe(error: KafkaError, servers: str, topic: str | None = None) -> KafkaErrorText:
    name = error.name()
    said = "no broker answers" if name == "_ALL_BROKERS_DOWN" else error.str().rstrip(".")
    if name in _NO_TOPIC:
        return missing_topic(topic or "of that name")
    if name in _NOT_LOGGED_IN:
        return KafkaErrorText(
            f"Kafka at {servers} rejected our credentials: {said}.",
            "Check TRUNKLINE_KAFKA_SASL_USERNAME and TRUNKLINE_KAFKA_SASL_PASSWORD.",
        )
    if name == "_SSL":
        return KafkaErrorText(
            f"The TLS connection to Kafka at {servers} failed: {said}.",
            "Check TRUNKLINE_KAFKA_SECURITY_PROTOCOL and TRUNKLINE_KAFKA_CA_FILE.",
        )
    if name in _NOT_ALLOWED:
        return KafkaErrorText(
            f"Kafka denied access: {said}{f' (topic {topic})' if topic else ''}.",
            "Allow Trunkline's Kafka user to describe, read and write the topics, and to read with "
            "the consumer group.",
        )
    if name in _TOO_LARGE:
        return KafkaErrorText(
            f"The message is too large for the Kafka topic {topic}.", "Raise max.message.bytes of the topic."
        )
    if name == "_INVALID_ARG":
        return KafkaErrorText(f"The Kafka settings are invalid: {said}.", _CORRECT_SETTINGS)
    if name == "TOPIC_EXCEPTION":
        return KafkaErrorText(
            f"{topic!r} is not a valid topic name: {said}.",
            "Use up to 249 letters, digits, dots, underscores and hyphens.",
        )
    if name in _UNREACHABLE:
        return KafkaErrorText(
            f"Kafka at {servers} cannot be reached: {said}.", "Start it, or correct TRUNKLINE_BROKER."
        )
    return KafkaErrorText(f"Kafka reported {name}: {said}.", "See the log of the Kafka broker.")
