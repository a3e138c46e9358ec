"""`trunkline config`: the settings as they are read here, and where each value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from cyclopts import App

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import JsonFlag
from trunkline.cli.rendering.output import print_json, print_table
from trunkline.jsontypes import encode

if TYPE_CHECKING:
    import pydantic_settings

    from trunkline import durations, settings
    from trunkline.settings import Settings
else:
    settings = lazy_module("trunkline.settings")
    pydantic_settings = lazy_module("pydantic_settings")
    durations = lazy_module("trunkline.durations")


app = App(name="config", help="Show the settings.", version_flags=[])


@app.command(name="show")
def show(*, json: JsonFlag = False) -> int:
    """
    Show the settings that `up` would use here.

    Each setting is an environment variable, a key in trunkline.toml, and a flag of `up`. Secrets are masked.
    """
    with explained():
        current = settings.load_settings({})
    sources = _sources(current)
    rows = [
        (name, _shown_setting(current, name), sources.get(name, "default"), field.description or "")
        for name, field in settings.Settings.model_fields.items()
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


# The verb of earlier versions.
app.command(show, name="view", show=False)


def _sources(current: Settings) -> Mapping[str, str]:
    """Which of the places that settings come from has each one; the strongest wins."""
    kind, toml = type(current), settings.config_file()
    places: list[tuple[str, Mapping[str, object]]] = [
        (str(toml), pydantic_settings.TomlConfigSettingsSource(kind, toml)()),
        (".env", pydantic_settings.DotEnvSettingsSource(kind)()),
        ("environment", pydantic_settings.EnvSettingsSource(kind)()),
    ]
    return {name: place for place, values in places for name in values}


def _shown_setting(current: Settings, name: str) -> str | None:
    # Its URL says where the data is; the password in it is masked.
    return current.shown_store if name == "store" else _shown(getattr(current, name))


def _shown(value: object) -> str | None:
    match value:
        case None:
            return None
        case timedelta():
            return durations.format_duration(value)
        case tuple():
            if value and isinstance(value[0], dict):
                return encode(cast("object", value)).decode()
            return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - a tuple of texts
        case dict():
            return encode(cast("dict[str, object]", value)).decode() if value else None
        case _:
            # A secret's text is its mask.
            return str(value)
