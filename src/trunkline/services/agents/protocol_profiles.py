"""Protocol profiles of the operator: a folder of JSON Schemas, one `NAME.json` each, read once at start."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trunkline.errors import ConfigurationError
from trunkline.jsontypes import JsonObject
from trunkline.protocols import InvalidProfile, register_profile


def load_profiles(folder: Path | None) -> None:
    """Makes them known to this process; raises `ConfigurationError`."""
    if folder is None:
        return
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError as exc:
        raise ConfigurationError(
            f"Cannot read the profiles folder {folder}: {exc.strerror}.",
            fix="Correct TRUNKLINE_PROFILES, or make the folder readable.",
        ) from exc
    for path in paths:
        _load(path)


def _load(path: Path) -> None:
    try:
        schema = msgspec.json.decode(path.read_bytes(), type=JsonObject)
        register_profile(path.stem, schema)
    except OSError as exc:
        raise _unusable(path, f"it cannot be read: {exc.strerror}", "Make the file readable.") from exc
    except msgspec.DecodeError as exc:
        raise _unusable(
            path, f"it is not a JSON object: {exc}", "The file must contain a JSON Schema."
        ) from exc
    except InvalidProfile as exc:
        raise _unusable(path, exc.message, exc.fix) from exc


def _unusable(path: Path, reason: str, fix: str) -> ConfigurationError:
    return ConfigurationError(f"Invalid profile {path}: {reason}.", fix=fix)
