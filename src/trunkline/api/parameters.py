"""
The parameters of an operation: declared once as a struct, read from a request, and described in OpenAPI.

A field is in the path if the operation's path names it, in a header if its annotation says so (`in_header`), and in the
query otherwise. A request with several invalid parameters is rejected with a finding for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    overload,
)
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.requests import Request
from starlette.types import Scope

from trunkline.api.correlation_ids import find_header
from trunkline.clock import Instant
from trunkline.errors import Finding, Invalid

Place = Literal["path", "query", "header"]
Read = Callable[[str], object]

# Every store can hold numbers of this size.
MAX_ATTEMPT = MAX_VERSION = 2**31 - 1

_HEADER = "header"
# Booleans in a query. OpenAPI documents `true` and `false`; the others have always been accepted.
_BOOLEANS = {
    **dict.fromkeys(("true", "1", "on", "yes", "t", "y"), True),
    **dict.fromkeys(("false", "0", "off", "no", "f", "n"), False),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\{(\w+)\}")
ENCODED_SLASH = "%2F"


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one operation. Those with a default are optional."""


P = TypeVar("P", bound=Parameters)


def in_header(name: str) -> dict[str, str]:
    """`extra` of a parameter that is sent as the header `name`."""
    return {_HEADER: name}


@overload
def instant(time: datetime) -> Instant: ...


@overload
def instant(time: None) -> None: ...


@overload
def instant(time: datetime | None) -> Instant | None: ...


def instant(time: datetime | None) -> Instant | None:
    """A time parameter, converted to the type that stores use."""
    return None if time is None else Instant((time - _EPOCH) // _MICROSECOND)


class Parameter(NamedTuple):
    """One parameter: where it is sent, and how its text is read."""

    field: str
    name: str
    place: Place
    # Without null: a parameter is omitted instead.
    type: object
    meta: msgspec.Meta | None
    required: bool
    default: object
    is_list: bool
    # `str`: every text is a value.
    read: Read

    @property
    def path(self) -> str:
        """As findings name it."""
        return f"{self.place}.{self.name.lower() if self.place == 'header' else self.name}"


class ParameterReader(Generic[P]):
    """Reads `form` from requests to one path."""

    def __init__(self, form: type[P], path: str) -> None:
        declared = [_parameter(field, PLACEHOLDER.findall(path)) for field in msgspec.structs.fields(form)]
        in_path = [each for each in declared if each.place == "path"]
        if len(in_path) != len(PLACEHOLDER.findall(path)):
            raise TypeError(f"{form.__name__} lacks a parameter of {path}")
        in_headers = [each for each in declared if each.place == "header"]
        self._form = form
        # The others are values as they are in the path.
        self._checked_in_path = [each for each in in_path if each.read is not str]
        self._in_query = [each for each in declared if each.place == "query"]
        self._in_headers = [(each.name.lower().encode(), each) for each in in_headers]
        self._required = [each for each in declared if each.required and each.place != "path"]
        self.parameters = [*in_path, *self._in_query, *in_headers]

    def read(self, request: Request) -> P:
        scope = request.scope
        given: dict[str, object] = {**scope["path_params"]}
        wrong: list[Finding] = []
        for parameter in self._checked_in_path:
            _read(parameter, scope["path_params"][parameter.name], given, wrong)
        query_string: bytes = scope["query_string"]
        if query_string and self._in_query:
            pairs = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
            last = dict(pairs)
            for parameter in self._in_query:
                if parameter.name not in last:
                    continue
                if parameter.is_list:
                    texts = [text for name, text in pairs if name == parameter.name]
                    given[parameter.field] = _read_items(parameter, texts, wrong)
                else:
                    _read(parameter, last[parameter.name], given, wrong)
        for header, parameter in self._in_headers:
            value = find_header(scope["headers"], header)
            if value is not None:
                _read(parameter, value.decode("latin-1"), given, wrong)
        if self._required:
            named = {each.path for each in wrong}
            missing = (each.path for each in self._required if each.field not in given)
            wrong += [Finding(path=path, message="is missing") for path in missing if path not in named]
        if wrong:
            raise Invalid("; ".join(f"{each.path}: {each.message}" for each in wrong), findings=wrong)
        return self._form(**given)


def _read(parameter: Parameter, text: str, given: dict[str, object], wrong: list[Finding]) -> None:
    try:
        given[parameter.field] = parameter.read(text)
    except ValueError as error:
        wrong.append(Finding(path=parameter.path, message=str(error)))


def _read_items(parameter: Parameter, texts: Sequence[str], wrong: list[Finding]) -> list[object]:
    values: list[object] = []
    for position, text in enumerate(texts):
        try:
            values.append(parameter.read(text))
        except ValueError as error:
            wrong.append(Finding(path=f"{parameter.path}.{position}", message=str(error)))
    return values


def _parameter(field: msgspec.structs.FieldInfo, in_path: Sequence[str]) -> Parameter:
    declared = _without_none(field.type)
    type_, meta = _unannotated(declared)
    extra = (meta.extra if meta is not None else None) or {}
    place: Place = "header" if _HEADER in extra else "path" if field.name in in_path else "query"
    is_list = get_origin(type_) is list
    item, item_meta = _unannotated(get_args(type_)[0]) if is_list else (type_, meta)
    return Parameter(
        field=field.name,
        name=str(extra.get(_HEADER, field.encode_name)),
        place=place,
        type=declared,
        meta=meta,
        required=field.required,
        default=field.default,
        is_list=is_list,
        read=_reader(field.encode_name, item, item_meta),
    )


def _without_none(type_: object) -> object:
    if get_origin(type_) not in {Union, UnionType}:
        return type_
    (given,) = (each for each in get_args(type_) if each is not NoneType)
    return given


def _unannotated(type_: object) -> tuple[object, msgspec.Meta | None]:
    if get_origin(type_) is not Annotated:
        return type_, None
    inner, *metadata = get_args(type_)
    return inner, next((each for each in metadata if isinstance(each, msgspec.Meta)), None)


# --- how the text of each type is read; a ValueError says what it must be


def _reader(name: str, type_: object, meta: msgspec.Meta | None) -> Read:
    if type_ is bool:
        return partial(_boolean, name)
    if type_ is int:
        return partial(_integer, meta)
    if type_ is float:
        return partial(_number, meta)
    if type_ is datetime:
        return _date_time
    if get_origin(type_) is Literal:
        return partial(_choice, frozenset(cast("tuple[str, ...]", get_args(type_))))
    return str if meta is None or not _is_bound(meta) else partial(_text, meta, _compiled(meta))


def _is_bound(meta: msgspec.Meta) -> bool:
    return not (meta.pattern is None and meta.min_length is None and meta.max_length is None)


def _compiled(meta: msgspec.Meta) -> re.Pattern[str] | None:
    return None if meta.pattern is None else re.compile(meta.pattern)


def _boolean(name: str, text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ValueError(f"{name} is {text!r}; it can be true or false")
    return value


def _integer(meta: msgspec.Meta | None, text: str) -> int:
    # Limited to the digits of the largest bound: Python parses longer numbers slowly.
    value = int(text) if _INTEGER.fullmatch(text) else None
    if value is None or not _is_within(value, meta):
        raise ValueError(f"must be a whole number{_bounds(meta)}")
    return value


def _number(meta: msgspec.Meta | None, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and _is_within(value, meta)):
        raise ValueError(f"must be a number{_bounds(meta)}")
    return value


def _is_within(value: float, meta: msgspec.Meta | None) -> bool:
    if meta is None:
        return True
    return (meta.ge is None or value >= meta.ge) and (meta.le is None or value <= meta.le)


def _bounds(meta: msgspec.Meta | None) -> str:
    match meta:
        case msgspec.Meta(ge=int() as least, le=int() as most):
            return f" from {least} to {most}"
        case msgspec.Meta(ge=int() as least):
            return f", {least} or more"
        case _:
            return ""


def _date_time(text: str) -> datetime:
    expected = "must be a time with an offset, such as 2026-03-01T12:00:00Z"
    # Only in the extended format; Python would also read a week or a bare day.
    if not _DATE_TIME.match(text):
        raise ValueError(expected)
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(expected) from None
    if value.tzinfo is None:
        raise ValueError(expected)
    return value


def _choice(choices: frozenset[str], text: str) -> str:
    if text not in choices:
        raise ValueError(f"must be one of: {', '.join(sorted(choices))}")
    return text


def _text(meta: msgspec.Meta, pattern: re.Pattern[str] | None, text: str) -> str:
    if meta.min_length is not None and len(text) < meta.min_length:
        raise ValueError(f"must have at least {meta.min_length} characters")
    if meta.max_length is not None and len(text) > meta.max_length:
        raise ValueError(f"must have at most {meta.max_length} characters")
    # The whole text: `$` alone would accept a trailing line break.
    if pattern is not None and not pattern.fullmatch(text):
        raise ValueError(f"must match {pattern.pattern}")
    return text


def routed_path(scope: Scope) -> str:
    """
    The path by which a request is routed and its role is found: decoded, except for encoded slashes.

    The workflow behind a published agent is called `agents/NAME`, so `agents%2FNAME` has to stay one segment.
    """
    raw: bytes = scope.get("raw_path") or b""
    path: str = scope["path"]
    if b"%2f" not in raw.lower():
        return path
    segments = raw.decode("latin-1").partition("?")[0].split("/")
    return "/".join(unquote(segment).replace("/", ENCODED_SLASH) for segment in segments)
