"""
An agent's options, in addition to the columns of the agents table, as JSON:

    transport          "https" | "aws-agentcore" | "stdio"
    resend             "same_message" | "ask_first" | "never"
    endpoint_override  "https://host/path"
    allow_card_origin  "https://host:port", or a list of such
    rate               {"per_second": 5, "burst": 10}
    breaker            {"failures", "rate", "window", "open_ms", "probes", "jsonrpc_errors"}; true: its defaults
    tags               ["research"], or one such
    skills             ["translate"], or one such; left out: as the agent's card says
    cost               0.002: what a call costs, in whichever unit; by it steps choose the cheapest agent
    repeatable         true: the same work may be given to it twice, as while it is shadowed

In JSON they are next to the other fields; in Python they are an agent's `options`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import get_args

import msgspec

from trunkline.agents import AgentOptions, BreakerPolicy, RateLimit, Resend, TransportName
from trunkline.agents.http_urls import check_url, origin_of
from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject

OPTION_FIELDS = AgentOptions.__struct_fields__
MAX_CARD_ORIGINS = 20
MAX_LISTED = 100
MAX_LISTED_CHARACTERS = 100
MAX_COST = 1_000_000_000
MAX_PER_SECOND = 100_000
MAX_BURST = 100_000
MAX_BREAKER_CALLS = 10_000
# A day, as for a timeout.
MAX_OPEN_MS = 86_400_000


class _RateLimitInput(RateLimit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _BreakerInput(BreakerPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


def read_option(key: str, value: Json) -> object:
    """One option; None: as if it were not given. Raises `ValueError` as msgspec words it."""
    match key:
        case "resend":
            return _one_of(get_args(Resend), value)
        case "transport":
            return _one_of(get_args(TransportName), value)
        case "allow_card_origin":
            listed = (value,) if isinstance(value, str) else value
            return tuple(map(_normal, msgspec.convert(listed, tuple[str, ...])))
        case "tags" | "skills":
            listed = (value,) if isinstance(value, str) else value
            return tuple(dict.fromkeys(msgspec.convert(listed, tuple[str, ...])))
        case "rate":
            return RateLimit(**msgspec.structs.asdict(msgspec.convert(value, _RateLimitInput)))
        case "breaker":
            if isinstance(value, bool):
                return BreakerPolicy() if value else None
            return BreakerPolicy(**msgspec.structs.asdict(msgspec.convert(value, _BreakerInput)))
        case "cost":
            return msgspec.convert(value, float)
        case "repeatable":
            return msgspec.convert(value, bool)
        case _:
            return msgspec.convert(value, str)


def _one_of(known: tuple[str, ...], value: Json) -> Json:
    if value not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return value


def _normal(origin: str) -> str:
    """An origin as all others are written; what is more than one stays, and is refused."""
    normal = origin_of(origin)
    is_origin = normal is not None and origin.count("/") == 2 + origin.endswith("/") and "?" not in origin
    return normal if normal is not None and is_origin else origin


def options_from(given: Mapping[str, object]) -> AgentOptions:
    """The options among the fields that were read."""
    return msgspec.convert({key: given[key] for key in OPTION_FIELDS if key in given}, AgentOptions)


def options_to_json(options: AgentOptions) -> JsonObject:
    return {
        "transport": options.transport,
        "resend": options.resend,
        "endpoint_override": options.endpoint_override,
        "allow_card_origin": list(options.allow_card_origin),
        "rate": None if options.rate is None else msgspec.structs.asdict(options.rate),
        "breaker": breaker_to_json(options.breaker),
        "repeatable": options.repeatable,
        "tags": list(options.tags),
        "skills": list(options.skills),
        "cost": options.cost,
    }


def breaker_to_json(breaker: BreakerPolicy | None) -> JsonObject | None:
    """With its defaults, which the store leaves out."""
    return None if breaker is None else msgspec.structs.asdict(breaker)


def check_options(options: AgentOptions) -> Iterable[Finding]:
    override = options.endpoint_override
    reason = None if override is None else check_url(override)
    if reason is not None:
        yield Finding(path="endpoint_override", message=f"cannot be called: {reason}")
    yield from _check_origins(options.allow_card_origin)
    yield from _check_listed("tags", options.tags)
    yield from _check_listed("skills", options.skills)
    if options.cost is not None and not 0 <= options.cost <= MAX_COST:
        yield Finding(path="cost", message=f"must be at least 0 and at most {MAX_COST:,}")
    if options.rate is not None:
        yield from _check_rate(options.rate)
    if options.breaker is not None:
        yield from _check_breaker(options.breaker)


def _check_origins(origins: tuple[str, ...]) -> Iterable[Finding]:
    if len(origins) > MAX_CARD_ORIGINS:
        yield Finding(path="allow_card_origin", message=f"must have at most {MAX_CARD_ORIGINS} origins")
    for number, origin in enumerate(origins):
        path = f"allow_card_origin[{number}]"
        reason = check_url(origin)
        if reason is not None:
            yield Finding(path=path, message=f"is not an origin: {reason}")
        elif origin_of(origin) != origin:
            yield Finding(
                path=path, message=f"must be an origin without a path; did you mean {origin_of(origin)}?"
            )


def _check_listed(path: str, listed: tuple[str, ...]) -> Iterable[Finding]:
    if len(listed) > MAX_LISTED:
        yield Finding(path=path, message=f"must have at most {MAX_LISTED} entries")
    for number, text in enumerate(listed):
        if not 1 <= len(text) <= MAX_LISTED_CHARACTERS or text != text.strip() or not text.isprintable():
            yield Finding(
                path=f"{path}[{number}]",
                message=f"must have 1 to {MAX_LISTED_CHARACTERS} printable characters, and not start or end with "
                "a space",
            )


def _check_rate(rate: RateLimit) -> Iterable[Finding]:
    if not (isfinite(rate.per_second) and 0 < rate.per_second <= MAX_PER_SECOND):
        yield Finding(path="rate.per_second", message=f"must be greater than 0 and at most {MAX_PER_SECOND}")
    yield from _check_whole("rate.burst", rate.burst, MAX_BURST)


def _check_breaker(breaker: BreakerPolicy) -> Iterable[Finding]:
    yield from _check_whole("breaker.failures", breaker.failures, MAX_BREAKER_CALLS)
    if not 0 < breaker.rate <= 1:
        yield Finding(path="breaker.rate", message="must be greater than 0 and at most 1")
    yield from _check_whole("breaker.window", breaker.window, MAX_BREAKER_CALLS)
    yield from _check_whole("breaker.open_ms", breaker.open_ms, MAX_OPEN_MS)
    yield from _check_whole("breaker.probes", breaker.probes, MAX_BREAKER_CALLS)


def _check_whole(path: str, number: int, most: int) -> Iterable[Finding]:
    if not 1 <= number <= most:
        yield Finding(path=path, message=f"must be from 1 to {most}")
