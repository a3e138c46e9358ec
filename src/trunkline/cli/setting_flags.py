"""The settings as flags, the same for `up` and `serve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from cyclopts import Parameter, Token

from trunkline.cli.lazy_imports import lazy_module

if TYPE_CHECKING:
    from trunkline import settings
    from trunkline.settings import Settings
else:
    settings = lazy_module("trunkline.settings")


def _ignore_case(type_: object, tokens: Sequence[Token]) -> str:
    """`WARNING` means the choice `warning`, as in a variable."""
    by_folded = {str(choice).casefold(): str(choice) for choice in get_args(type_)}
    (token,) = tokens
    chosen = by_folded.get(token.value.casefold())
    if chosen is None:
        choices = ", ".join(f'"{choice}"' for choice in by_folded.values())
        raise ValueError(f'Invalid value "{token.value}" for {token.keyword}. Choose from: {choices}.')
    return chosen


_InAnyCase = Parameter(converter=_ignore_case)
LogLevel = Annotated[Literal["debug", "info", "warning", "error"] | None, _InAnyCase]
LogFormat = Annotated[Literal["auto", "json", "console"] | None, _InAnyCase]
SecurityProtocol = Annotated[Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] | None, _InAnyCase]
SaslMechanism = Annotated[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None, _InAnyCase]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SettingFlags:
    """
    The settings.

    Parameters
    ----------
    host
        The address to listen on. Default: 127.0.0.1.
    port
        The port to listen on; 0 takes a free one. Default: 8000.
    max_connections
        Maximum number of connections to the API. Default: 1000.
    max_connections_per_address
        Maximum number of connections to the API from one address. Default: 500.
    tls_cert
        Certificate of the API, as a PEM file: the API uses TLS then.
    tls_key
        Private key of the certificate, if its file does not contain it.
    data
        The folder of the database and the key file. Default: ./trunkline-data.
    store
        sqlite:///relative, sqlite:////absolute or postgresql://user@host/database. Default: SQLite in the data folder.
    broker
        How tasks travel: memory:// or kafka://host:port,host:port. Default: memory://.
    tasks_topic
        The topic of the tasks; a pool's is this name, a dot and the pool. Default: trunkline.tasks.
    results_topic
        The topic of the agents' results. Default: trunkline.results.
    events_topic
        The topic of the runs' events, as CloudEvents; empty for none. Default: trunkline.events.
    commands_topic
        A topic whose messages start runs, like trunkline.commands. Default: none.
    topic_partitions
        How many partitions `topics create` makes, and `topics check` wants. Default: 4.
    topic_replication
        How many replicas such a topic has; -1: as the brokers say. Default: -1.
    topic_retention
        How long such a topic keeps its records, like 7d.
    kafka_group
        What the names of the consumer groups begin with. Default: trunkline.
    kafka_security_protocol
        How to talk to Kafka. Default: plaintext.
    kafka_sasl_mechanism
        How to log in to Kafka; the password is TRUNKLINE_KAFKA_SASL_PASSWORD.
    kafka_sasl_username
        Who logs in to Kafka.
    kafka_ca_file
        The certificates that Kafka's is checked against.
    kafka_cert_file
        Trunkline's own certificate for Kafka.
    kafka_key_file
        The key of that certificate.
    public_url
        The address at which agents reach the API, like https://trunkline.example: they may ring instead of being asked.
    pool
        The pool of this bridge: it takes tasks of agents in that pool alone.
    require_keys
        Ask for an API key on loopback too.
    allowed_networks
        Networks (CIDR) or host names that agents may have beside public ones, separated by commas.
    max_answer_bytes
        The longest answer that is taken from an agent.
    process_header
        Send the name of the calling process to agents, in the header X-Trunkline-Process.
    stdio_commands
        The programs that agents may be (stdio:NAME), as JSON: {"NAME": ["program", "argument"]}.
    profiles
        A folder of profiles for zones, each a JSON Schema in a file NAME.json.
    line_timeout
        How long a line to an agent that works is held before it is asked from time to time, like 60s.
    blobs
        Where files of agents are kept that are long: a folder, or s3://bucket/prefix. Default: with SQLite
        the data folder, else they stay in the outputs.
    max_inline_bytes
        The longest file of an agent that stays in the step's output.
    max_request_bytes
        Maximum size of the stored files in a request to an agent, in bytes.
    max_wire_bytes
        The most bytes that runs wire shows of a request's body, and of an answer's; 1024 to 4194304.
    max_body_bytes
        The longest request that is taken.
    ui_folder
        A build of the web UI to serve instead of the one in the package.
    reply_timeout
        How long an agent's question waits for an answer, like 2d, where the step does not say; 0s: for ever.
    retention
        How long finished runs are kept, like 12h or 30d; 0s keeps them.
    audit_retention
        How long it is kept who has changed what, like 365d; 0s: for ever.
    stop_timeout
        How long calls may take to end when it is stopped, like 30s.
    log_level
        The least severe messages that are logged, on stderr.
    log_format
        How log lines look: json for programs, console for people.
    json
        Log lines as JSON, like --log-format json.
    """

    host: str | None = None
    port: int | None = None
    max_connections: int | None = None
    max_connections_per_address: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    data: str | None = None
    store: str | None = None
    broker: str | None = None
    tasks_topic: str | None = None
    results_topic: str | None = None
    events_topic: str | None = None
    commands_topic: str | None = None
    topic_partitions: int | None = None
    topic_replication: int | None = None
    topic_retention: str | None = None
    kafka_group: str | None = None
    kafka_security_protocol: SecurityProtocol = None
    kafka_sasl_mechanism: SaslMechanism = None
    kafka_sasl_username: str | None = None
    kafka_ca_file: str | None = None
    kafka_cert_file: str | None = None
    kafka_key_file: str | None = None
    public_url: str | None = None
    pool: str | None = None
    require_keys: Annotated[bool | None, Parameter(negative="", show_default=False)] = None
    allowed_networks: str | None = None
    max_answer_bytes: int | None = None
    process_header: Annotated[bool | None, Parameter(negative="", show_default=False)] = None
    stdio_commands: str | None = None
    profiles: str | None = None
    line_timeout: str | None = None
    blobs: str | None = None
    max_inline_bytes: int | None = None
    max_request_bytes: int | None = None
    max_wire_bytes: int | None = None
    max_body_bytes: int | None = None
    ui_folder: str | None = None
    reply_timeout: str | None = None
    retention: str | None = None
    audit_retention: str | None = None
    stop_timeout: str | None = None
    log_level: LogLevel = None
    log_format: LogFormat = None
    json: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def settings(self) -> Settings:
        """Raises `ConfigurationError` for those that make no sense."""
        flags: dict[str, object] = {name: value for name, value in asdict(self).items() if value is not None}
        if flags.pop("json"):
            flags.setdefault("log_format", "json")
        return settings.load_settings(flags)


NO_FLAGS = SettingFlags()
