"""An agent's retry policy as JSON, with its durations as people write them (`100ms`, `25s`), and back."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.durations import format_duration, parse_duration
from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject
from trunkline.messages import ERROR_CODES
from trunkline.retry_policy import MAX_ATTEMPTS, RetryCondition, RetryPolicy

_HTTP_CLASS = re.compile(r"[1-5]xx")


class _RetryPolicyInput(msgspec.Struct, forbid_unknown_fields=True):
    max_attempts: int | UnsetType = UNSET
    backoff: Literal["fixed", "linear", "exponential"] | UnsetType = UNSET
    first_delay: str | UnsetType = UNSET
    max_delay: str | UnsetType = UNSET
    jitter: bool | UnsetType = UNSET
    on: tuple[str | int, ...] | UnsetType = UNSET


def retry_from_json(value: Json) -> RetryPolicy:
    """
    The policy; what is not given has its default.

    Raises `ValueError` with what is wrong and where, as msgspec words it: `… - at `$.field``.
    """
    form = msgspec.convert(value, _RetryPolicyInput)
    given = {
        name: field
        for name in _RetryPolicyInput.__struct_fields__
        if (field := getattr(form, name)) is not UNSET
    }
    for name in ("first_delay", "max_delay"):
        if name in given:
            given[name] = _duration(name, given[name])
    return RetryPolicy(**given)


def _duration(field: str, text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as exc:
        raise ValueError(f"{exc} - at `$.{field}`") from exc


def retry_to_json(policy: RetryPolicy) -> JsonObject:
    return {
        "max_attempts": policy.max_attempts,
        "backoff": policy.backoff,
        "first_delay": format_duration(policy.first_delay),
        "max_delay": format_duration(policy.max_delay),
        "jitter": policy.jitter,
        "on": list(policy.on),
    }


def check_retry(policy: RetryPolicy) -> list[Finding]:
    findings: list[Finding] = []
    if not 1 <= policy.max_attempts <= MAX_ATTEMPTS:
        findings.append(_finding("max_attempts", f"must be from 1 to {MAX_ATTEMPTS}"))
    if policy.max_delay < policy.first_delay:
        findings.append(_finding("max_delay", "must not be shorter than first_delay"))
    findings += [
        _finding(
            "on",
            f"{condition!r} is not an HTTP status, a class such as 5xx, a JSON-RPC code, an"
            " error code, no_answer or any",
        )
        for condition in policy.on
        if not _is_condition(condition)
    ]
    return findings


def _is_condition(condition: RetryCondition) -> bool:
    if isinstance(condition, int):
        return condition < 0 or 100 <= condition <= 599
    return (
        condition in {"any", "no_answer"}
        or condition in ERROR_CODES
        or bool(_HTTP_CLASS.fullmatch(condition))
    )


def _finding(field: str, message: str) -> Finding:
    return Finding(path=f"retry.{field}", message=message)
