"""When a failed call is worth another attempt, and after which delay."""

from __future__ import annotations

import zlib
from datetime import timedelta

from trunkline.messages import ERROR_CODES, StepError
from trunkline.retry_policy import RetryCondition, RetryPolicy

DEFAULT_POLICY = RetryPolicy()

# Past every sensible max_delay, and far from what a float or a timedelta cannot hold.
_MAX_DOUBLINGS = 40
# An agent that asks for more is not worth waiting for; the attempt after it tells.
_MAX_RETRY_AFTER = timedelta(hours=1)


def is_answered(error: StepError) -> bool:
    """True: the agent itself said no, so the next attempt is a new message."""
    return ERROR_CODES[error.code].answered


def was_sent(error: StepError) -> bool:
    return ERROR_CODES[error.code].sent


def is_worth_retrying(policy: RetryPolicy, error: StepError) -> bool:
    return any(_covers(condition, error) for condition in policy.on)


# What no repetition can mend, whatever the policy says.
_NEVER_RETRIED = frozenset(
    {
        "expression_failed",
        "output_failed",
        "request_not_encodable",
        "secret_missing",
        "secret_unreadable",
        "workflow_unknown",
        "child_input_invalid",
        "child_too_deep",
        "internal_error",
    }
)


def _covers(condition: RetryCondition, error: StepError) -> bool:
    if error.code in _NEVER_RETRIED:
        return False
    if isinstance(condition, int):
        return condition == (error.jsonrpc_code if condition < 0 else error.http_status)
    if condition == "any":
        return True
    if condition == "no_answer":
        return not is_answered(error)
    if condition.endswith("xx"):
        return error.http_status is not None and str(error.http_status)[0] == condition[0]
    return condition == error.code


def delay_before(policy: RetryPolicy, attempt: int, error: StepError, *, salt: str) -> timedelta:
    """
    How long to wait before attempt number `attempt` (the second is the first that waits).

    The jitter is drawn from `salt`, not from chance: replaying a journal gives the same delays.
    """
    failures = attempt - 1
    first = policy.first_delay.total_seconds()
    match policy.backoff:
        case "fixed":
            seconds = first
        case "linear":
            seconds = first * failures
        case "exponential":
            seconds = first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS)
    seconds = min(seconds, policy.max_delay.total_seconds())
    if policy.jitter:
        seconds *= 0.5 + zlib.crc32(f"{salt}/{attempt}".encode()) / 2**33
    if error.retry_after_ms is not None:
        seconds = max(seconds, min(error.retry_after_ms / 1000, _MAX_RETRY_AFTER.total_seconds()))
    return timedelta(seconds=seconds)
