"""`trunkline config view`: every setting, and where its value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.options import JsonFlag
from trunkline.cli.rendering.output import print_json, print_table
from trunkline.jsontypes import encode

if TYPE_CHECKING:
    from trunkline.settings import Settings


def view(*, json: JsonFlag = False) -> int:
    """
    Show the settings that `up` would use here.

    Each is an environment variable, a key in trunkline.toml, and a flag of `up`. Secrets are not shown.
    """
    with explained():
        from trunkline.settings import Settings, load_settings  # noqa: PLC0415  (heavy; few commands need it)

        settings = load_settings({})
    sources = _sources(settings)
    rows = [
        (name, _shown_setting(settings, name), sources.get(name, "default"), field.description or "")
        for name, field in Settings.model_fields.items()
    ]
    if json:
        print_json({name: {"value": value, "source": source} for name, value, source, _ in rows})
    else:
        print_table(
            ("SETTING", "VALUE", "FROM", "MEANING"),
            [
                [f"TRUNKLINE_{name.upper()}", value or "", source, meaning]
                for name, value, source, meaning in rows
            ],
        )
    return Exit.OK


def _sources(settings: Settings) -> Mapping[str, str]:
    """Which of the places that settings come from has each one; the strongest wins."""
    from pydantic_settings import (  # noqa: PLC0415  (heavy; only this command needs them)
        DotEnvSettingsSource,
        EnvSettingsSource,
        TomlConfigSettingsSource,
    )

    kind = type(settings)
    places: list[tuple[str, Mapping[str, object]]] = [
        ("trunkline.toml", TomlConfigSettingsSource(kind)()),
        (".env", DotEnvSettingsSource(kind)()),
        ("environment", EnvSettingsSource(kind)()),
    ]
    return {name: place for place, values in places for name in values}


def _shown_setting(settings: Settings, name: str) -> str | None:
    # Its address tells where the data is; only the password in it is nobody's business.
    return settings.shown_store if name == "store" else _shown(getattr(settings, name))


def _shown(value: object) -> str | None:
    from trunkline.workflow.durations import format_duration  # noqa: PLC0415  (its package compiles CEL)

    match value:
        case None:
            return None
        case timedelta():
            return format_duration(value)
        case tuple():
            return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - a tuple of texts
        case dict():
            return encode(cast("dict[str, object]", value)).decode() if value else None
        case _:
            # A secret's text is its mask.
            return str(value)
