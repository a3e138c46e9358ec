"""
What a method's params must be: a JSON Schema, given as such or made from a type.

What is served is what is checked: a type's own rules come after its schema. A finding names the param that is
wrong and never repeats its value, for that may be a secret.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeGuard, cast

import msgspec

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.protocols.zone.params_profiles import InvalidProfile, ParamsProfile
from trunkline.workflow.document.locations import path_text
from trunkline.zones.errors import INVALID_PARAMS, ZoneFault

# A JSON Schema, or a type: a msgspec Struct, a dataclass, a TypedDict, a pydantic model, a dict of anything.
ParamsForm: TypeAlias = JsonObject | type[object] | None
Conversion: TypeAlias = Callable[[JsonObject], object]

ANY_OBJECT: JsonObject = {"type": "object"}

_MOST_FINDINGS = 20


class MethodParams:
    """The form of one method's params."""

    def __init__(self, form: ParamsForm = None) -> None:
        self.schema, self._converted = _schema_and_conversion(form)
        try:
            self._profile = ParamsProfile("params", self.schema)
        except InvalidProfile as exc:
            raise ValueError(f"The params are not a valid JSON Schema: {exc}") from exc

    def check(self, params: JsonObject) -> object:
        """What the handler is called with; raises a fault that names what is wrong."""
        findings = self._profile.check(params)
        if findings:
            raise invalid_params([(finding.path, finding.message) for finding in findings])
        return self._converted(params)


def invalid_params(fields: Sequence[tuple[str, str]]) -> ZoneFault:
    """A fault for params that are wrong, each with what is wrong about it."""
    listed: list[Json] = [{"path": path, "message": message} for path, message in fields[:_MOST_FINDINGS]]
    return ZoneFault(INVALID_PARAMS, data={"fields": listed})


class _PydanticModel(Protocol):
    """As pydantic has it; a program without pydantic does not load it for our sake."""

    def model_json_schema(self) -> JsonObject: ...
    def model_validate(self, obj: object) -> object: ...


def _is_model(form: object) -> TypeGuard[_PydanticModel]:
    return isinstance(form, type) and hasattr(form, "model_json_schema") and hasattr(form, "model_validate")


def _schema_and_conversion(form: ParamsForm) -> tuple[JsonObject, Conversion]:
    if form is None:
        return ANY_OBJECT, _as_they_are
    if isinstance(form, dict):
        return form, _as_they_are
    if _is_model(form):
        return form.model_json_schema(), _conversion_to_model(form)
    if _is_object(form):
        return _unfolded(msgspec.json.schema(form)), _conversion_to(form)
    raise TypeError(
        "params takes a JSON Schema (a dict), a msgspec Struct, a dataclass, a TypedDict, a pydantic model or dict,"
        f" not {form!r}."
    )


def _is_object(form: type[object]) -> bool:
    return (
        (typing.get_origin(form) or form) is dict
        or typing.is_typeddict(form)
        or dataclasses.is_dataclass(form)
        or (isinstance(form, type) and issubclass(form, msgspec.Struct))  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker may pass anything
    )


def _unfolded(schema: dict[str, object]) -> JsonObject:
    """The type itself at the top: msgspec only refers to it from there."""
    whole = cast("JsonObject", schema)
    reference, definitions = whole.get("$ref"), whole.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict):
        return whole
    top = cast("JsonObject", definitions[reference.removeprefix("#/$defs/")])
    return {**top, "$defs": definitions} if b'"#/$defs/' in encode(top) else top


def _as_they_are(params: JsonObject) -> object:
    return params


def _conversion_to(form: type[object]) -> Conversion:
    def convert(params: JsonObject) -> object:
        try:
            return msgspec.convert(params, form)
        except msgspec.ValidationError as exc:
            # Its own words may quote the value; only where it is wrong can be said.
            _, is_inside, place = str(exc).rpartition(" - at `$")
            path = place.removesuffix("`").removeprefix(".") if is_inside else ""
            raise invalid_params([(path, "is not valid")]) from None

    return convert


def _conversion_to_model(model: _PydanticModel) -> Conversion:
    from pydantic import ValidationError  # noqa: PLC0415 - a caller with a model has pydantic

    def convert(params: JsonObject) -> object:
        try:
            return model.model_validate(params)
        except ValidationError as exc:
            # As above: a validator's own words may quote the value.
            places = [path_text(error["loc"]) for error in exc.errors(include_input=False, include_url=False)]
            raise invalid_params([(place, "is not valid") for place in places]) from None

    return convert
