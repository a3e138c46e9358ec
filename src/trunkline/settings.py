"""
The settings, read once: flag > TRUNKLINE_* > .env > trunkline.toml > default.

Each is a flag of `trunkline up`, an environment variable and a key of `trunkline.toml` under the same name.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from trunkline.agents.http_urls import check_url
from trunkline.agents.stdio_programs import OUR_PREFIX, StdioProgram
from trunkline.agents.transport_urls import parse_program
from trunkline.durations import parse_duration
from trunkline.errors import ConfigurationError, Finding
from trunkline.jsontypes import decode
from trunkline.mail_settings import Mail
from trunkline.messages import TopicNames

CONFIG_FILE = Path("trunkline.toml")
# Names another file, or that one, explicitly. Only the environment has it: a file cannot vouch for itself.
CONFIG_VARIABLE = "TRUNKLINE_CONFIG"

_POSTGRES = ("postgresql://", "postgres://")
_KAFKA = "kafka://"
_COMMANDS_FORM = 'use an object of commands by name, such as {"worker": ["python", "-m", "zone"]}'
_GROUPS_FORM = 'use an object of lists of people by group, such as {"support": ["ada", "bob"]}'
MAX_GROUPS = 1_000
MAX_GROUP_MEMBERS = 1_000
_PROGRAM_KEYS = {field.name for field in fields(StdioProgram)}
_RUNS_PROGRAMS = "stdio_commands"
_PASSWORD = re.compile(r"(//[^/:@]*):.*@")


def _duration(value: object) -> object:
    # A number in trunkline.toml has no unit, like a number in a variable.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = f"{value}"
    return parse_duration(value) if isinstance(value, str) else value


def _comma_separated(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _json_object(form: str) -> BeforeValidator:
    def decoded(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return decode(value)
        except msgspec.DecodeError as exc:
            raise ValueError(f"not valid JSON ({exc}); {form}") from exc

    return BeforeValidator(decoded)


def _check_groups(groups: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    if len(groups) > MAX_GROUPS:
        raise ValueError(f"there are {len(groups):,} groups, but the limit is {MAX_GROUPS:,}")
    for name, members in groups.items():
        if not name or not members or not all(members):
            raise ValueError(f"the group {name!r} is empty, or has an empty name; {_GROUPS_FORM}")
        if len(members) > MAX_GROUP_MEMBERS:
            why = f"the group {name!r} has {len(members):,} members, but the limit is {MAX_GROUP_MEMBERS:,}"
            raise ValueError(why)
        inner = next((member for member in members if member in groups), None)
        if inner is not None:
            raise ValueError(
                f"the member {inner!r} of the group {name!r} is a group; list its members instead, because "
                "groups contain only people"
            )
    return groups


def _json_list(value: object) -> object:
    if not isinstance(value, str):
        return value
    form = 'use a list of objects, such as [{"topic": "orders", "type": "order.created"}]'
    try:
        found = decode(value)
    except msgspec.DecodeError as exc:
        raise ValueError(f"not valid JSON ({exc}); {form}") from exc
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError(f"not a list of objects; {form}")
    return found


def _check_program_name(name: str) -> str:
    parse_program(f"stdio:{name}")
    return name


def _program(value: object) -> object:
    """A list is the command alone."""
    if isinstance(value, list):
        return {"command": cast("object", value)}
    if isinstance(value, dict):
        for key in sorted(map(str, cast("dict[object, object]", value).keys() - _PROGRAM_KEYS)):
            raise ValueError(f"unknown key {key}; the allowed keys are command and environment")
        return cast("object", value)
    if isinstance(value, str):
        why = (
            'a command must be a list of arguments, such as ["python", "-m", "zone"], because it is '
            "not run through a shell"
        )
        raise ValueError(why)  # noqa: TRY004 - pydantic tells of a ValueError only
    return value


def _check_program(program: StdioProgram) -> StdioProgram:
    if not program.command or not all(program.command):
        raise ValueError('the command is empty; use a list of arguments, such as ["python", "-m", "zone"]')
    ours = [name for name in program.environment if name.startswith(OUR_PREFIX)]
    if ours:
        raise ValueError(
            f"{ours[0]} is reserved for Trunkline's own settings and is not passed to programs; use "
            "another variable name"
        )
    return program


def _public_url(value: object) -> object:
    if not isinstance(value, str):
        return value
    # Not repeated: there may be a password in it.
    wrong = "it contains a user name or password" if "@" in value else check_url(value)
    if wrong is None and "?" in value:
        wrong = "it has a query ('?…')"
    if wrong is not None:
        raise ValueError(f"{wrong}; use a URL such as https://trunkline.example")
    return value.rstrip("/")


def _ignoring_case(choices: object) -> BeforeValidator:
    """`WARNING` means the choice `warning`."""
    by_folded = {str(choice).casefold(): str(choice) for choice in get_args(choices)}

    def chosen(value: object) -> object:
        return by_folded.get(value.casefold(), value) if isinstance(value, str) else value

    return BeforeValidator(chosen)


SecurityProtocol = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]
PublicUrl = Annotated[str, BeforeValidator(_public_url)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
Programs = Annotated[
    dict[
        Annotated[str, AfterValidator(_check_program_name)],
        Annotated[StdioProgram, BeforeValidator(_program), AfterValidator(_check_program)],
    ],
    NoDecode,
    _json_object(_COMMANDS_FORM),
]
Groups = Annotated[
    dict[str, tuple[str, ...]], NoDecode, _json_object(_GROUPS_FORM), AfterValidator(_check_groups)
]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_comma_separated)]
# Read in full where the sources are opened: their expressions need the workflow language.
Sources = Annotated[tuple[dict[str, Any], ...], NoDecode, BeforeValidator(_json_list)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="TRUNKLINE_", env_file=".env", toml_file=CONFIG_FILE, extra="ignore", frozen=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on. 0 picks a free port.")
    max_connections: int = Field(
        1_000,
        ge=1,
        description="Maximum number of connections to the API. Fewer are accepted if the limit of open files is low.",
    )
    max_connections_per_address: int = Field(
        500,
        ge=1,
        description="Maximum number of connections to the API from one address, or from one /64 network with IPv6. "
        "Behind a proxy, all connections have the proxy's address.",
    )
    max_requests_per_key: int = Field(
        200,
        ge=1,
        description="Maximum number of requests that one API key can have in progress, in each process.",
    )
    max_rate_per_key: int = Field(
        1_000, ge=1, description="Maximum number of requests per second of one API key, in each process."
    )
    max_requests_per_address: int = Field(
        50,
        ge=1,
        description="Maximum number of requests that one address, or one /64 network with IPv6, can have in progress "
        "without an API key, in each process. It applies if the API requires keys, to publications with "
        "`security: public`.",
    )
    max_rate_per_address: int = Field(
        100,
        ge=1,
        description="Maximum number of requests per second of one address without an API key, in each process.",
    )
    tls_cert: Path | None = Field(
        None,
        description="Certificate of the API, as a PEM file. If set, the API uses TLS. A renewed file is read again.",
    )
    tls_key: Path | None = Field(
        None,
        description="Private key of the certificate, as a PEM file. If not set, the certificate's file contains it.",
    )
    data: Path = Field(Path("trunkline-data"), description="Folder for the database and the key file.")
    store: SecretStr | None = Field(
        None,
        description="Database URL: sqlite:///relative, sqlite:////absolute or postgresql://…. If not set, "
        "SQLite in the data folder.",
    )
    broker: str = Field(
        "memory://", description="Message broker for tasks and results: memory:// or kafka://host:port,…."
    )
    tasks_topic: str = Field(
        "trunkline.tasks",
        description="Kafka topic for tasks, and the prefix of the task topics of agent pools.",
    )
    results_topic: str = Field("trunkline.results", description="Kafka topic for results from agents.")
    events_topic: str = Field(
        "",
        description="Kafka topic for run events, for other systems. If empty, no events are published.",
    )
    commands_topic: str = Field(
        "", description="Kafka topic whose messages start runs. If empty, none is read."
    )
    sources: Sources = Field(
        (),
        description="Event sources: Kafka topics of other systems whose records become events. A JSON list of objects; "
        "in trunkline.toml, tables [[sources]].",
    )
    topic_partitions: int = Field(
        4, ge=1, description="Number of partitions for topics created by `trunkline topics create`."
    )
    topic_replication: int = Field(
        -1,
        ge=-1,
        description="Replication factor for topics created by `trunkline topics create`. -1 uses the broker's "
        "default.",
    )
    topic_retention: Duration = Field(
        timedelta(days=7), description="Retention time for topics created by `trunkline topics create`."
    )
    kafka_group: str = Field("trunkline", description="Prefix of the Kafka consumer group names.")
    kafka_security_protocol: Annotated[SecurityProtocol, _ignoring_case(SecurityProtocol)] = Field(
        "plaintext", description="Security protocol for connections to Kafka."
    )
    kafka_sasl_mechanism: Annotated[SaslMechanism | None, _ignoring_case(SaslMechanism)] = Field(
        None, description="SASL mechanism for Kafka."
    )
    kafka_sasl_username: str | None = Field(None, description="SASL user name for Kafka.")
    kafka_sasl_password: SecretStr | None = Field(None, description="SASL password for Kafka.")
    kafka_ca_file: Path | None = Field(None, description="CA certificates that verify Kafka's certificate.")
    kafka_cert_file: Path | None = Field(None, description="Client certificate for Kafka.")
    kafka_key_file: Path | None = Field(None, description="Private key of the client certificate.")
    public_url: PublicUrl | None = Field(
        None,
        description="URL at which other systems and people reach the API. Webhook URLs, answer links and cards of "
        "publications contain it. If set, agents can send push notifications instead of being polled.",
    )
    a2a_http_statuses: Literal["1.0.0", "1.0.1"] = Field("1.0.1", description="A2A version of HTTP statuses.")
    grpc_port: int | None = Field(None, ge=1, description="Port for A2A over gRPC. Needs trunkline[grpc].")
    grpc_public_address: Annotated[str, Field(pattern=r"^[^\s/]+:[0-9]{1,5}$")] | None = Field(
        None, description="Host name and port of gRPC in agent cards, such as a2a.example:443."
    )
    push_max_failures: int = Field(
        1_500,
        gt=0,
        description="After this many failed attempts in a row, a push notification config of a published task is "
        "disabled. Attempts to a receiver that does not respond are a minute apart in the end, so the default is more "
        "than a day.",
    )
    pool: str | None = Field(
        None, description="Agent pool of this bridge. The bridge takes only tasks of this pool."
    )
    secret_key: SecretStr | None = Field(
        None,
        description="Key that encrypts stored secrets. With several keys, separated by commas, the first one encrypts, "
        "and all of them decrypt. If not set, a key file in the data folder is used.",
    )
    require_keys: bool = Field(
        False,
        description="Require an API key on loopback, too. On any other address, a key is always required.",
    )
    allowed_networks: Names = Field(
        (),
        description="Networks (CIDR) or host names that Trunkline may call in addition to public addresses: agents, "
        "token endpoints, and receivers of notifications.",
    )
    max_answer_bytes: int = Field(
        16 * 1024 * 1024, gt=0, description="Maximum size of an agent's response, in bytes."
    )
    max_memory_in_flight: int = Field(
        512 * 1024 * 1024,
        gt=0,
        description="Memory for large inputs and responses of agents, in bytes, until the results are stored. A "
        "response counts four times, an input twice, a stream once. Calls wait for it, and their timeouts stand still "
        "meanwhile. While inputs take half of it, no further call begins. Responses count for agents over HTTP.",
    )
    max_run_bytes: int = Field(
        512 * 1024 * 1024,
        gt=0,
        description="Maximum size of a run's input and of the inputs and outputs of its steps together, in bytes. "
        "A run with more fails with run_too_large.",
    )
    cache_max_bytes: int = Field(
        256 * 1024 * 1024,
        gt=0,
        description="Maximum size of the cache of outputs of steps, in bytes. What expires first is deleted first.",
    )
    process_header: bool = Field(
        False,
        description="Send the header X-Trunkline-Process, with the host name and the process id of the caller, to "
        "agents. Their logs then show which process made a call.",
    )
    stdio_commands: Programs = Field(
        default_factory=dict,
        description="Programs that agents can run as (stdio:NAME): a JSON object of commands by name.",
    )
    profiles: Path | None = Field(
        None,
        description="Folder with additional zone profiles (NAME.json, a JSON Schema).",
    )
    line_timeout: Duration = Field(
        timedelta(seconds=60),
        description="How long to hold a connection to a working agent open before polling it instead.",
    )
    blobs: str | None = Field(
        None,
        description="Where large attachments are stored: a folder or s3://bucket/prefix. With SQLite, the data "
        "folder by default.",
    )
    max_inline_bytes: int = Field(
        256 * 1024,
        gt=0,
        description="Maximum size of an agent's file, in bytes, that stays in the step's output.",
    )
    max_request_bytes: int = Field(
        64 * 1024 * 1024,
        gt=0,
        description="Maximum size of the stored files in a request to an agent, in bytes. A file that the request "
        "contains several times counts several times.",
    )
    max_wire_bytes: int = Field(
        64 * 1024,
        ge=1024,
        le=4 * 1024 * 1024,
        description="Maximum size of a request or response body in the wire record, in bytes: 1 KiB to 4 MiB.",
    )
    max_body_bytes: int = Field(
        4 * 1024 * 1024, gt=0, description="Maximum size of a request body for the API, in bytes."
    )
    max_body_memory: int = Field(
        512 * 1024 * 1024,
        gt=0,
        description="Memory for request bodies over 64 KiB, in bytes, until their requests have a response. A body "
        "counts four times. One API key, or one address without a key, can have half of it. Any further request "
        "gets status 429 or 503.",
    )
    ui_folder: Path | None = Field(
        None, description="Folder with a build of the web UI to serve instead of the bundled one."
    )
    reply_timeout: Duration = Field(
        timedelta(0), description="How long an agent's question waits for a reply. 0s waits indefinitely."
    )
    groups: Groups = Field(
        default_factory=dict,
        description="Groups of people, by name: a JSON object of lists of the names of API keys. Tasks can be assigned "
        "to groups.",
    )
    mail: Mail | None = Field(
        None,
        description="The mail server for subscriptions: a JSON object with `host` and `sender`, and optionally `port` "
        "(587), `tls` (`starttls`, `tls` or `none`), `ca_file`, `user`, `password_secret` (the name of a secret), "
        "`addresses` of people by name, and `domains` to which mail may be sent.",
    )
    retention: Duration = Field(
        timedelta(days=30), description="How long finished runs are kept. 0s keeps them indefinitely."
    )
    event_retention: Duration = Field(
        timedelta(days=7),
        description="How long received events are kept. A step takes an event only while it is kept. "
        "0s keeps them indefinitely.",
    )
    audit_retention: Duration = Field(
        timedelta(days=365), description="How long audit log entries are kept. 0s keeps them indefinitely."
    )
    stop_timeout: Duration = Field(
        timedelta(seconds=30),
        description="How long calls in progress may take to finish when the process stops.",
    )
    log_level: Annotated[LogLevel, _ignoring_case(LogLevel)] = Field(
        "info", description="Minimum level of log messages."
    )
    log_format: Annotated[LogFormat, _ignoring_case(LogFormat)] = Field(
        "auto", description="Format of log lines."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del file_secret_settings
        toml_settings = TomlConfigSettingsSource(settings_cls, config_file())
        return init_settings, env_settings, dotenv_settings, toml_settings

    @property
    def sqlite_path(self) -> Path:
        url = self.store_url
        return self.data / "trunkline.db" if url is None else Path(url.removeprefix("sqlite:///"))

    @property
    def store_url(self) -> str | None:
        return None if self.store is None else self.store.get_secret_value()

    @property
    def shown_store(self) -> str | None:
        """The store's address without the password in it."""
        return None if self.store_url is None else _PASSWORD.sub(r"\1:***@", self.store_url)

    @property
    def uses_postgres(self) -> bool:
        return (self.store_url or "").startswith(_POSTGRES)

    @property
    def uses_kafka(self) -> bool:
        return self.broker.startswith(_KAFKA)

    @property
    def kafka_servers(self) -> str:
        return self.broker.removeprefix(_KAFKA)

    @property
    def topics(self) -> TopicNames:
        return TopicNames(
            tasks=self.tasks_topic,
            results=self.results_topic,
            events=self.events_topic,
            commands=self.commands_topic,
        )

    @property
    def key_file(self) -> Path:
        return self.data / "secret.key"


def config_file() -> Path:
    named = os.environ.get(CONFIG_VARIABLE)
    return Path(named) if named else CONFIG_FILE


def load_settings(flags: Mapping[str, object]) -> Settings:
    """Raises `ConfigurationError` that names each setting which makes no sense."""
    _check_config_file()
    _check_env_file()
    try:
        settings = Settings.model_validate({}) if not flags else Settings(**flags)  # pyright: ignore[reportArgumentType] - checked by pydantic
    except ValidationError as exc:
        findings = [_finding(error["loc"], error["msg"], error["input"]) for error in exc.errors()]
        raise ConfigurationError(
            "; ".join(f"{finding.path}: {finding.message}" for finding in findings),
            fix="Correct the flag, the TRUNKLINE_… variable or the key in trunkline.toml.",
        ) from exc
    _check_backends(settings)
    return settings


def _check_config_file() -> None:
    file = config_file()
    if not file.exists():
        if CONFIG_VARIABLE in os.environ and file != CONFIG_FILE:
            raise ConfigurationError(
                f"{CONFIG_VARIABLE} names {file}, which does not exist.", fix="Correct the path, or unset it."
            )
        return
    try:
        keys = tomllib.loads(file.read_text()).keys()
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            f"Cannot read {file}: {exc}", fix=f"Correct the syntax of {file}, or its permissions."
        ) from exc
    known = Settings.model_fields.keys()
    for key in keys - known:
        closest = difflib.get_close_matches(key, known, 1)
        hint = f" Did you mean {closest[0]}?" if closest else ""
        raise ConfigurationError(
            f"Unknown key {key} in {file}.{hint}",
            fix=f"Remove it, or use one of: {', '.join(sorted(known))}.",
        )
    if _RUNS_PROGRAMS in keys and not os.environ.get(CONFIG_VARIABLE):
        raise _not_from_here(file, f"If you trust this file, name it explicitly: {CONFIG_VARIABLE}={file}.")


def _check_env_file() -> None:
    if _RUNS_PROGRAMS in DotEnvSettingsSource(Settings)():
        raise _not_from_here(
            Path(".env"), f"Set TRUNKLINE_{_RUNS_PROGRAMS.upper()} as an environment variable."
        )


def _not_from_here(file: Path, fix: str) -> ConfigurationError:
    """A folder that someone else has filled must not make us run its programs."""
    return ConfigurationError(
        f"{_RUNS_PROGRAMS} names programs to run, so it is not read from {file} of the current folder.",
        fix=fix,
    )


def _finding(place: tuple[int | str, ...], message: str, value: object) -> Finding:
    # The library's own words before those of our parsers.
    said = (
        message.removeprefix("Value error, ")
        .replace("Input should be", "must be")
        .partition(", unable to")[0]
    )
    if said.startswith("must be") and place[0] in _SHOWN and isinstance(value, (str, int, float)):
        said = f"{said}, but it is {str(value)[:_MAX_SHOWN_CHARACTERS]!r}"
    return Finding(path=".".join(str(part) for part in place), message=said)


# The settings whose values an error may repeat: all but secrets and the commands of programs, which can contain some.
_SHOWN = {
    name
    for name, field in Settings.model_fields.items()
    if name != "stdio_commands" and "SecretStr" not in str(field.annotation)
}
_MAX_SHOWN_CHARACTERS = 100


def _check_backends(settings: Settings) -> None:
    url = settings.store_url
    if url is not None and not url.startswith(("sqlite:///", *_POSTGRES)):
        raise ConfigurationError(
            f"TRUNKLINE_STORE has an unsupported scheme: {url.split('://', 1)[0]}.",
            fix="Use sqlite:///relative, sqlite:////absolute or postgresql://user@host/database.",
        )
    if settings.broker != "memory://" and not _is_kafka(settings.broker):
        raise ConfigurationError(
            f"TRUNKLINE_BROKER is not a supported broker URL: {settings.broker.split('@')[-1]}.",
            fix="Use memory:// or kafka://host:port,host:port.",
        )
    if settings.uses_kafka and not settings.uses_postgres:
        raise ConfigurationError(
            "Kafka needs a database that several processes can share, but the store is SQLite.",
            fix="Set TRUNKLINE_STORE=postgresql://…, or remove TRUNKLINE_BROKER.",
        )


def _is_kafka(broker: str) -> bool:
    return broker.startswith(_KAFKA) and all(
        host and port.isdigit()
        for host, _, port in (server.rpartition(":") for server in broker.removeprefix(_KAFKA).split(","))
    )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
