"""
The settings, read once: flag > TRUNKLINE_* > .env > trunkline.toml > default.

Each is a flag of `trunkline up`, an environment variable and a key of `trunkline.toml` under the same name.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, cast

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from trunkline.agents.http_urls import check_url
from trunkline.agents.stdio_programs import OUR_PREFIX, StdioProgram
from trunkline.agents.transport_urls import parse_program
from trunkline.errors import ConfigurationError, Finding
from trunkline.jsontypes import decode
from trunkline.messages import TopicNames
from trunkline.workflow.durations import parse_duration

CONFIG_FILE = Path("trunkline.toml")

_POSTGRES = ("postgresql://", "postgres://")
_KAFKA = "kafka://"
_COMMANDS_FORM = """write commands by name, such as {"worker": ["python", "-m", "zone"]}"""
_PROGRAM_KEYS = {field.name for field in fields(StdioProgram)}
_PASSWORD = re.compile(r"(//[^/:@]*):.*@")


def _duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _comma_separated(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _json_object(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return decode(value)
    except msgspec.DecodeError as exc:
        raise ValueError(f"it is no JSON ({exc}); {_COMMANDS_FORM}") from exc


def _check_program_name(name: str) -> str:
    parse_program(f"stdio:{name}")
    return name


def _program(value: object) -> object:
    """A list is the command alone."""
    if isinstance(value, list):
        return {"command": cast("object", value)}
    if isinstance(value, dict):
        for key in sorted(map(str, cast("dict[object, object]", value).keys() - _PROGRAM_KEYS)):
            raise ValueError(f"it has a key {key} that means nothing; it may have command and environment")
        return cast("object", value)
    if isinstance(value, str):
        why = 'a command is a list of its words, such as ["python", "-m", "zone"]; no shell reads it'
        raise ValueError(why)  # noqa: TRY004 - pydantic tells of a ValueError only
    return value


def _check_program(program: StdioProgram) -> StdioProgram:
    if not program.command or not all(program.command):
        raise ValueError('its command is empty; write one such as ["python", "-m", "zone"]')
    ours = [name for name in program.environment if name.startswith(OUR_PREFIX)]
    if ours:
        raise ValueError(
            f"{ours[0]} is a setting of Trunkline itself, which no program gets; give it a variable of its own"
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
        raise ValueError(f"{wrong}; write one such as https://trunkline.example")
    return value.rstrip("/")


PublicUrl = Annotated[str, BeforeValidator(_public_url)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
Programs = Annotated[
    dict[
        Annotated[str, AfterValidator(_check_program_name)],
        Annotated[StdioProgram, BeforeValidator(_program), AfterValidator(_check_program)],
    ],
    NoDecode,
    BeforeValidator(_json_object),
]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_comma_separated)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="TRUNKLINE_", env_file=".env", toml_file=CONFIG_FILE, extra="ignore", frozen=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    data: Path = Field(Path("trunkline-data"), description="Folder of the database and the key file.")
    store: SecretStr | None = Field(
        None,
        description="sqlite:///relative, sqlite:////absolute or postgresql://…; SQLite in the data folder if not set.",
    )
    broker: str = Field("memory://", description="How tasks travel: memory:// or kafka://host:port,….")
    tasks_topic: str = Field(
        "trunkline.tasks", description="Topic of the tasks, and the beginning of a pool's."
    )
    results_topic: str = Field("trunkline.results", description="Topic of the agents' results.")
    events_topic: str = Field("trunkline.events", description="Topic of the runs' events; empty: none.")
    commands_topic: str = Field("", description="Topic whose messages start runs; empty: none.")
    topic_partitions: int = Field(4, ge=1, description="Partitions of a topic that topics create makes.")
    topic_replication: int = Field(-1, ge=-1, description="Replicas of such a topic; -1: as the brokers say.")
    topic_retention: Duration = Field(timedelta(days=7), description="How long such a topic keeps records.")
    kafka_group: str = Field("trunkline", description="Beginning of the names of our consumer groups.")
    kafka_security_protocol: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = Field(
        "plaintext", description="How to talk to Kafka."
    )
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        None, description="How to log in to Kafka."
    )
    kafka_sasl_username: str | None = Field(None, description="Who logs in to Kafka.")
    kafka_sasl_password: SecretStr | None = Field(None, description="The password of that user.")
    kafka_ca_file: Path | None = Field(None, description="Certificates that Kafka's is checked against.")
    kafka_cert_file: Path | None = Field(None, description="Our own certificate for Kafka.")
    kafka_key_file: Path | None = Field(None, description="The key of our own certificate.")
    public_url: PublicUrl | None = Field(
        None,
        description="Address at which agents reach the API; with it they may ring instead of being asked.",
    )
    pool: str | None = Field(None, description="Pool of this bridge: it takes tasks of that pool alone.")
    secret_key: SecretStr | None = Field(
        None, description="Key for the agents' secrets; a key file if not set."
    )
    require_keys: bool = Field(
        False, description="The API asks for a key on loopback too; on any other address it always does."
    )
    allowed_networks: Names = Field(
        (), description="Networks or host names that agents may have beside public ones."
    )
    max_answer_bytes: int = Field(16 * 1024 * 1024, gt=0, description="Longest answer taken from an agent.")
    stdio_commands: Programs = Field(
        default_factory=dict,
        description="Programs that agents may be (stdio:NAME): a JSON object of commands by name.",
    )
    profiles: Path | None = Field(
        None,
        description="Folder of profiles for zones beside those that come with it: NAME.json, JSON Schemas.",
    )
    line_timeout: Duration = Field(
        timedelta(seconds=60), description="How long a line to an agent that works is held; then it is asked."
    )
    blobs: str | None = Field(
        None,
        description="Where long files are kept: a folder, or s3://bucket/prefix; with SQLite the data folder.",
    )
    max_inline_bytes: int = Field(
        256 * 1024, gt=0, description="Longest file of an agent that stays in the step's output."
    )
    max_wire_bytes: int = Field(
        64 * 1024,
        ge=1024,
        le=4 * 1024 * 1024,
        description="Most that the wire's record keeps of a request's body, and of an answer's: 1 KiB to 4 MiB.",
    )
    max_body_bytes: int = Field(4 * 1024 * 1024, gt=0, description="Longest request body taken by the API.")
    ui_folder: Path | None = Field(
        None, description="Folder of a build of the web UI to serve instead of the one in the package."
    )
    reply_timeout: Duration = Field(
        timedelta(0), description="How long an agent's question waits for an answer; 0s: for ever."
    )
    retention: Duration = Field(
        timedelta(days=30), description="How long finished runs are kept; 0s keeps them."
    )
    audit_retention: Duration = Field(
        timedelta(days=365), description="How long it is kept who has changed what; 0s: for ever."
    )
    stop_timeout: Duration = Field(
        timedelta(seconds=30), description="How long calls may take to end at a stop."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least level that is logged."
    )
    log_format: Literal["auto", "json", "console"] = Field("auto", description="How log lines look.")

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
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)

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


def load_settings(flags: Mapping[str, object]) -> Settings:
    """Raises `ConfigurationError` that names each setting which makes no sense."""
    _check_config_file()
    try:
        settings = Settings.model_validate({}) if not flags else Settings(**flags)  # pyright: ignore[reportArgumentType] - checked by pydantic
    except ValidationError as exc:
        findings = [_finding(error["loc"], error["msg"]) for error in exc.errors(include_input=False)]
        raise ConfigurationError(
            "; ".join(f"{finding.path}: {finding.message}" for finding in findings),
            fix="Correct the flag, the TRUNKLINE_… variable or the key in trunkline.toml.",
        ) from exc
    _check_backends(settings)
    return settings


def _check_config_file() -> None:
    if not CONFIG_FILE.exists():
        return
    try:
        keys = tomllib.loads(CONFIG_FILE.read_text()).keys()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            f"{CONFIG_FILE} cannot be read: {exc}", fix=f"Correct {CONFIG_FILE}."
        ) from exc
    known = Settings.model_fields.keys()
    for key in keys - known:
        closest = difflib.get_close_matches(key, known, 1)
        hint = f" Did you mean {closest[0]}?" if closest else ""
        raise ConfigurationError(
            f"{CONFIG_FILE} has a key {key} that means nothing.{hint}",
            fix=f"Remove it, or choose one of: {', '.join(sorted(known))}.",
        )


def _finding(place: tuple[int | str, ...], message: str) -> Finding:
    # The library's own words before those of our parsers.
    return Finding(path=".".join(str(part) for part in place), message=message.removeprefix("Value error, "))


def _check_backends(settings: Settings) -> None:
    url = settings.store_url
    if url is not None and not url.startswith(("sqlite:///", *_POSTGRES)):
        raise ConfigurationError(
            f"TRUNKLINE_STORE names no store that there is: {url.split('://', 1)[0]}.",
            fix="Use sqlite:///relative, sqlite:////absolute or postgresql://user@host/database.",
        )
    if settings.broker != "memory://" and not _is_kafka(settings.broker):
        raise ConfigurationError(
            f"TRUNKLINE_BROKER names no broker that there is: {settings.broker.split('@')[-1]}.",
            fix="Use memory:// or kafka://host:port,host:port.",
        )
    if settings.uses_kafka and not settings.uses_postgres:
        raise ConfigurationError(
            "Kafka connects processes, but a SQLite file belongs to one process.",
            fix="Set TRUNKLINE_STORE=postgresql://… as well, or leave TRUNKLINE_BROKER out.",
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
