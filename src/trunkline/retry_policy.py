"""The retry policy of agents and steps: which failures are tried again, how often, and after which delays."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

RetryCondition = str | int

# More calls than anybody waits for: a larger number is a mistake, in an agent's policy as in a step's.
MAX_ATTEMPTS = 1_000


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    When and how often a failed call is made again.

    `on` names what is worth another attempt: `no_answer`, HTTP statuses (`429`) and classes (`5xx`), JSON-RPC
    codes (`-32000`), error codes (`agent_task_failed`), or `any`.
    """

    max_attempts: int = 3
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    first_delay: timedelta = timedelta(seconds=1)
    max_delay: timedelta = timedelta(seconds=60)
    jitter: bool = True
    on: tuple[RetryCondition, ...] = ("no_answer", 408, 425, 429, "5xx")
