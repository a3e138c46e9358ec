"""
The settings, read once: flag > TRUNKLINE_* > .env > trunkline.toml > default.

Each is a flag of `trunkline up`, an environment variable and a key of `trunkline.toml` under the same name.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from trunkline.errors import ConfigurationError, Finding
from trunkline.workflow.durations import parse_duration

CONFIG_FILE = Path("trunkline.toml")


def _duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _comma_separated(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_comma_separated)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="TRUNKLINE_", env_file=".env", toml_file=CONFIG_FILE, extra="ignore", frozen=True
    )

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    data: Path = Field(Path("trunkline-data"), description="Folder of the database and the key file.")
    store: str | None = Field(
        None, description="sqlite:///relative or sqlite:////absolute; in the data folder if not set."
    )
    broker: str = Field("memory://", description="How tasks travel; embedded: memory://.")
    secret_key: SecretStr | None = Field(
        None, description="Key for the agents' secrets; a key file if not set."
    )
    allowed_networks: Names = Field(
        (), description="Networks or host names that agents may have beside public ones."
    )
    max_answer_bytes: int = Field(16 * 1024 * 1024, gt=0, description="Longest answer taken from an agent.")
    max_body_bytes: int = Field(4 * 1024 * 1024, gt=0, description="Longest request body taken by the API.")
    retention: Duration = Field(
        timedelta(days=30), description="How long finished runs are kept; 0s keeps them."
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
        if self.store is None:
            return self.data / "trunkline.db"
        return Path(self.store.removeprefix("sqlite:///"))

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
    if settings.store is not None and not settings.store.startswith("sqlite:///"):
        raise ConfigurationError(
            f"TRUNKLINE_STORE names no store that this version has: {settings.store.split('://', 1)[0]}.",
            fix="Use sqlite:///relative or sqlite:////absolute.",
        )
    if settings.broker != "memory://":
        raise ConfigurationError(
            f"TRUNKLINE_BROKER names no broker that this version has: {settings.broker.split('://', 1)[0]}.",
            fix="Use memory://.",
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
