"""
A policy as an operator writes it, read: TOML, JSON, or a dict in the zone's own code.

    secret_fields = ["bot_token"]
    [defaults]
    methods = ["execute_task"]
    profiles = ["slack"]
    rate = {per_second = 5, burst = 10}
    max_bytes = 65536
    [callers.verification]                     # and what else differs from the defaults
    keys = [{file = "verification.pem"}]       # public keys, PEM; two while they change
    certificates = ["spiffe://zones/verification"]
    unbound_tokens = true                      # accept tokens without `body`, of clients that don't send it

What is wrong is said by place, all of it at once, and never in the words of a key. Files are named as seen from the
policy's own folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TypeGuard, cast

import msgspec

from trunkline.agents.authentication.certificates import wrong_verifying_key
from trunkline.agents.model import RateLimit
from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.protocols.zone.params_profiles import InvalidProfile, ParamsProfile, find_profile
from trunkline.zones.access.policy import DEFAULT_SECRET_FIELDS, CallerRules, ZonePolicy

# Callers that show nothing of themselves, and so have nothing to be known by.
NAMELESS = ("anybody", "platform", "parent")

_MOST_KEYS = 8
_MOST_KEY_BYTES = 64 * 1024
_MOST_PER_SECOND = 100_000
_LONGEST_NAME = 255
_FIX = "Correct the policy and start the zone again."
_RULES = ("methods", "profiles", "rate", "max_bytes")
_OF_A_CALLER = (*_RULES, "keys", "certificates", "unbound_tokens")


def load_policy(path: Path) -> ZonePolicy:
    """The policy in a file: JSON if its name ends so, else TOML. Raises `Invalid`."""
    try:
        text = path.read_bytes()
    except OSError as exc:
        raise Invalid(f"The policy {path} cannot be read: {exc.strerror}.", fix="Name a file.") from exc
    try:
        document = decode(text) if path.suffix == ".json" else cast("Json", tomllib.loads(text.decode()))
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise Invalid(f"The policy {path} is not {kind}: {exc}", fix=_FIX) from exc
    return read_policy(document, path.parent)


def read_policy(document: Json, folder: Path | None = None) -> ZonePolicy:
    """The policy that this says; raises `Invalid` with everything that is wrong about it."""
    reader = _PolicyReader(folder or Path())
    policy = reader.policy(document)
    if reader.findings:
        said = "; ".join(f"{finding.path or 'the policy'}: {finding.message}" for finding in reader.findings)
        raise Invalid(f"The policy cannot be used: {said}.", findings=reader.findings, fix=_FIX)
    return policy


class _PolicyReader:
    """Reads on after a mistake, so that all of them are named."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.findings: list[Finding] = []
        # By what it is known by: a key or a certificate's name is of one caller only.
        self._owners: dict[str, str] = {}

    def policy(self, document: Json) -> ZonePolicy:
        fields = self._table("", document, ("callers", "defaults", "secret_fields"))
        defaults = self._table("defaults", fields.get("defaults", {}), _RULES)
        callers = self._callers(fields["callers"]) if "callers" in fields else None
        secret = self._texts("secret_fields", fields.get("secret_fields"))
        return ZonePolicy(
            callers=callers,
            defaults=self._rules("defaults", defaults),
            secret_fields=DEFAULT_SECRET_FIELDS.union(secret or ()),
        )

    def _callers(self, value: Json) -> Mapping[str, CallerRules]:
        if not isinstance(value, dict):
            self._wrong("callers", "must be a table of callers by name")
            return {}
        if not value:
            self._wrong("callers", "is empty, so no caller could be allowed; omit it to allow every caller")
        if "anybody" in value and "platform" in value:
            self._wrong(
                "callers",
                "names both anybody and platform: a call without credentials can belong to only one of them",
            )
        return {name: self._caller(name, fields) for name, fields in value.items()}

    def _caller(self, name: str, value: Json) -> CallerRules:
        place = f"callers.{name}"
        if not name or len(name) > _LONGEST_NAME or not name.isprintable() or name != name.strip():
            self._wrong(place, "is not a name: 1 to 255 printable characters, without spaces at its ends")
        fields = self._table(place, value, _OF_A_CALLER)
        rules = msgspec.structs.replace(
            self._rules(place, fields),
            keys=self._keys(name, fields.get("keys")),
            certificates=self._names(name, fields.get("certificates")),
            unbound_tokens=self._flag(f"{place}.unbound_tokens", fields.get("unbound_tokens")),
        )
        if not isinstance(value, dict):
            return rules
        if name in NAMELESS and ("keys" in fields or "certificates" in fields):
            self._wrong(place, "identifies calls without credentials, so it cannot have keys or certificates")
        elif name not in NAMELESS and "keys" not in fields and "certificates" not in fields:
            self._wrong(place, "has neither keys nor certificates, so it could not be authenticated")
        return rules

    def _rules(self, place: str, fields: JsonObject) -> CallerRules:
        methods = self._texts(f"{place}.methods", fields.get("methods"))
        return CallerRules(
            methods=None if methods is None else frozenset(methods),
            profiles=self._profiles(f"{place}.profiles", fields.get("profiles")),
            rate=self._rate(f"{place}.rate", fields.get("rate")),
            max_bytes=self._whole(f"{place}.max_bytes", fields.get("max_bytes")),
        )

    def _profiles(self, place: str, value: Json) -> tuple[ParamsProfile, ...] | None:
        names = self._texts(place, value)
        if names is None:
            return None
        found: list[ParamsProfile] = []
        for number, name in enumerate(names):
            try:
                found.append(find_profile(name))
            except InvalidProfile as exc:
                self._wrong(f"{place}[{number}]", exc.message)
        return tuple(found)

    def _rate(self, place: str, value: Json) -> RateLimit | None:
        if value is None:
            return None
        # A number alone is so many a second.
        written: Json = {"per_second": value} if _is_number(value) else value
        fields = self._table(place, written, ("per_second", "burst"))
        per_second = fields.get("per_second")
        if not _is_number(per_second) or not 0 < per_second <= _MOST_PER_SECOND:
            self._wrong(f"{place}.per_second", f"must be more than 0 and at most {_MOST_PER_SECOND}")
            return None
        burst = self._whole(f"{place}.burst", fields.get("burst"))
        return RateLimit(per_second=float(per_second), burst=1 if burst is None else burst)

    def _keys(self, caller: str, value: Json) -> tuple[str, ...]:
        place = f"callers.{caller}.keys"
        if value is None:
            return ()
        if not isinstance(value, list) or not 1 <= len(value) <= _MOST_KEYS:
            self._wrong(place, f"must be a list of 1 to {_MOST_KEYS} public keys")
            return ()
        keys: list[str] = []
        for number, item in enumerate(value):
            text = self._key_text(f"{place}[{number}]", item)
            if text is None:
                continue
            wrong = wrong_verifying_key(text)
            if wrong is not None:
                self._wrong(f"{place}[{number}]", wrong)
            elif self._is_free(f"{place}[{number}]", caller, text.strip(), "key"):
                keys.append(text)
        return tuple(keys)

    def _key_text(self, place: str, item: Json) -> str | None:
        match item:
            case str():
                return item
            case {"file": str(name)} if len(item) == 1:
                return self._file(place, name)
            case _:
                self._wrong(place, "must be a public key in PEM format, or {file = PATH}")
                return None

    def _file(self, place: str, name: str) -> str | None:
        path = self._folder / name
        try:
            with path.open("rb") as file:
                text = file.read(_MOST_KEY_BYTES)
            return text.decode("ascii")
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else "it is not text"
            self._wrong(place, f"the file {path} cannot be read: {why}")
            return None

    def _names(self, caller: str, value: Json) -> tuple[str, ...]:
        place = f"callers.{caller}.certificates"
        names = self._texts(place, value) or ()
        return tuple(
            name
            for number, name in enumerate(names)
            if self._is_free(f"{place}[{number}]", caller, name, "name")
        )

    def _is_free(self, place: str, caller: str, mark: str, kind: str) -> bool:
        owner = self._owners.setdefault(f"{kind} {mark}", caller)
        if owner != caller:
            self._wrong(place, f"is the {kind} of '{owner}', too: each caller needs its own")
        return owner == caller

    def _texts(self, place: str, value: Json) -> tuple[str, ...] | None:
        if value is None:
            return None
        texts = [item for item in value if isinstance(item, str) and item] if isinstance(value, list) else []
        if not isinstance(value, list) or not value or len(texts) != len(value):
            self._wrong(place, "must be a list of strings")
        return tuple(texts)

    def _whole(self, place: str, value: Json) -> int | None:
        # A bool is an int in Python.
        if value is None or (type(value) is int and value >= 1):
            return value
        self._wrong(place, "must be a whole number, at least 1")
        return None

    def _flag(self, place: str, value: Json) -> bool:
        if value is not None and not isinstance(value, bool):
            self._wrong(place, "must be true or false")
        return value is True

    def _table(self, place: str, value: Json, known: tuple[str, ...]) -> JsonObject:
        if not isinstance(value, dict):
            self._wrong(place, f"must be a table with: {', '.join(known)}")
            return {}
        for name in value:
            if name not in known:
                inside = f"{place}.{name}" if place else name
                self._wrong(inside, f"is not supported; supported: {', '.join(known)}")
        return value

    def _wrong(self, place: str, message: str) -> None:
        self.findings.append(Finding(path=place, message=message))


def _is_number(value: Json) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
