"""The settings as flags, the same for `up` and `serve`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.inputs import Choice
from trunkline.cli.lazy_imports import lazy_module

if TYPE_CHECKING:
    from trunkline import settings
    from trunkline.settings import Settings
else:
    settings = lazy_module("trunkline.settings")


DurationText = Annotated[str | None, Parameter(metavar="DURATION")]
Folder = Annotated[str | None, Parameter(metavar="FOLDER")]
File = Annotated[str | None, Parameter(metavar="FILE")]
Url = Annotated[str | None, Parameter(metavar="URL")]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"] | None, Choice]
LogFormat = Annotated[Literal["auto", "json", "console"] | None, Choice]
SecurityProtocol = Annotated[Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] | None, Choice]
SaslMechanism = Annotated[Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None, Choice]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SettingFlags:
    """
    The settings.

    Parameters
    ----------
    host
        Address to listen on. Default: 127.0.0.1.
    port
        Port to listen on. 0 picks a free port. Default: 8000.
    max_connections
        Maximum number of connections to the API. Default: 1000.
    max_connections_per_address
        Maximum number of connections to the API from one address. Default: 500.
    max_requests_per_key
        Maximum number of requests of one API key in progress. Default: 200.
    max_rate_per_key
        Maximum number of requests per second of one API key. Default: 1000.
    max_requests_per_address
        Maximum number of requests of one address without an API key in progress. Default: 50.
    max_rate_per_address
        Maximum number of requests per second of one address without an API key. Default: 100.
    max_body_memory
        Memory for large request bodies in progress, in bytes. Default: 536870912.
    tls_cert
        Certificate of the API, as a PEM file. The API then uses TLS.
    tls_key
        Private key of the certificate, if its file does not contain it.
    data
        Folder of the database and the key file. Default: ./trunkline-data.
    store
        Database: sqlite:///relative, sqlite:////absolute or postgresql://user@host/database. Default: SQLite in the
        data folder.
    broker
        Broker: memory:// or kafka://host:port,host:port. Default: memory://.
    tasks_topic
        Topic of the tasks. The topic of a pool is this name, a dot and the pool. Default: trunkline.tasks.
    results_topic
        Topic of the results. Default: trunkline.results.
    events_topic
        Topic of the events of runs, as CloudEvents, such as trunkline.events. Default: none.
    commands_topic
        Topic whose messages start runs, such as trunkline.commands. Default: none.
    sources
        Event sources, as JSON: [{"topic": "orders", "type": "order.created"}].
    topic_partitions
        Number of partitions of each topic, for `topics create` and `topics check`. Default: 4.
    topic_replication
        Number of replicas of new topics. -1 uses the default of the brokers. Default: -1.
    topic_retention
        How long new topics keep their records, such as 7d.
    kafka_group
        Prefix of the consumer groups. Default: trunkline.
    kafka_security_protocol
        Security protocol of Kafka. Default: plaintext.
    kafka_sasl_mechanism
        SASL mechanism of Kafka. The password is TRUNKLINE_KAFKA_SASL_PASSWORD.
    kafka_sasl_username
        SASL user name for Kafka.
    kafka_ca_file
        Certificate authorities that the certificate of Kafka is checked against.
    kafka_cert_file
        Client certificate for Kafka.
    kafka_key_file
        Private key of the client certificate.
    public_url
        URL at which other systems and people reach the API, such as https://trunkline.example. Webhook URLs, answer
        links and cards of publications contain it. Agents can then send push notifications instead of being polled.
    a2a_http_statuses
        Version of A2A whose HTTP statuses errors have over HTTP+JSON: 1.0.0 or 1.0.1. Default: 1.0.1.
    grpc_port
        Port for A2A over gRPC. Default: none.
    grpc_public_address
        Host name and port of gRPC in agent cards, such as a2a.example:443.
    push_max_failures
        Failed attempts in a row after which a push notification config is disabled. Default: 1500.
    pool
        Pool of this bridge. It then calls only agents of that pool.
    require_keys
        Require an API key on loopback too.
    allowed_networks
        Networks (CIDR) or host names, separated by commas, that Trunkline may call in addition to public addresses:
        agents, token endpoints, and receivers of notifications.
    max_answer_bytes
        Maximum size of a response of an agent.
    max_memory_in_flight
        Memory for large responses of agents, in bytes, until their results are stored.
    max_run_bytes
        Maximum size of a run's input and of the inputs and outputs of its steps together, in bytes.
    cache_max_bytes
        Maximum size of the cache of outputs of steps, in bytes.
    process_header
        Send the name of the calling process to agents in the header X-Trunkline-Process.
    stdio_commands
        Programs that stdio:NAME can start, as JSON: {"NAME": ["program", "argument"]}.
    profiles
        Folder of profiles for zones. Each is a JSON Schema in a file NAME.json.
    line_timeout
        How long to keep a connection to a working agent open before polling it, such as 60s.
    blobs
        Where to store large files of agents: a folder, or s3://bucket/prefix. Default: with SQLite the data folder,
        otherwise files stay in the outputs.
    max_inline_bytes
        Maximum size of a file that stays in the output of a step.
    max_request_bytes
        Maximum size of the stored files in a request to an agent, in bytes.
    max_wire_bytes
        Maximum size of a recorded request or response body, from 1024 to 4194304.
    max_body_bytes
        Maximum size of a request to the API.
    ui_folder
        Folder with a build of the web UI to serve instead of the included one.
    reply_timeout
        How long a question waits for an answer, such as 2d, unless the step sets it. 0s: no limit.
    groups
        Groups of people, as JSON: {"GROUP": ["KEY", "KEY"]}.
    mail
        Mail server for subscriptions, as JSON: {"host": "smtp.example.com", "sender": "trunkline@example.com"}.
    retention
        How long to keep finished runs, such as 12h or 30d. 0s keeps them forever.
    event_retention
        How long to keep received events, such as 7d. 0s keeps them forever.
    audit_retention
        How long to keep entries of the audit log, such as 365d. 0s keeps them forever.
    stop_timeout
        How long to wait for calls in progress when stopping, such as 30s.
    log_level
        Lowest level of messages to log, on stderr.
    log_format
        Format of log lines: json for programs, console for people.
    json
        Log as JSON, like --log-format json.
    """

    host: str | None = None
    port: int | None = None
    max_connections: int | None = None
    max_connections_per_address: int | None = None
    max_requests_per_key: int | None = None
    max_rate_per_key: int | None = None
    max_requests_per_address: int | None = None
    max_rate_per_address: int | None = None
    max_body_memory: int | None = None
    tls_cert: File = None
    tls_key: File = None
    data: Folder = None
    store: Url = None
    broker: Url = None
    tasks_topic: str | None = None
    results_topic: str | None = None
    events_topic: str | None = None
    commands_topic: str | None = None
    sources: str | None = None
    topic_partitions: int | None = None
    topic_replication: int | None = None
    topic_retention: DurationText = None
    kafka_group: str | None = None
    kafka_security_protocol: SecurityProtocol = None
    kafka_sasl_mechanism: SaslMechanism = None
    kafka_sasl_username: str | None = None
    kafka_ca_file: File = None
    kafka_cert_file: File = None
    kafka_key_file: File = None
    public_url: Url = None
    a2a_http_statuses: Literal["1.0.0", "1.0.1"] | None = None
    grpc_port: int | None = None
    grpc_public_address: str | None = None
    push_max_failures: int | None = None
    pool: str | None = None
    require_keys: Annotated[bool | None, Parameter(negative="", show_default=False)] = None
    allowed_networks: str | None = None
    max_answer_bytes: int | None = None
    max_memory_in_flight: int | None = None
    max_run_bytes: int | None = None
    cache_max_bytes: int | None = None
    process_header: Annotated[bool | None, Parameter(negative="", show_default=False)] = None
    stdio_commands: str | None = None
    profiles: Folder = None
    line_timeout: DurationText = None
    blobs: str | None = None
    max_inline_bytes: int | None = None
    max_request_bytes: int | None = None
    max_wire_bytes: int | None = None
    max_body_bytes: int | None = None
    ui_folder: Folder = None
    reply_timeout: DurationText = None
    groups: str | None = None
    mail: str | None = None
    retention: DurationText = None
    event_retention: DurationText = None
    audit_retention: DurationText = None
    stop_timeout: DurationText = None
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
