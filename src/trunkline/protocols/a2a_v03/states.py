"""
Task states and roles, in every spelling that agents use.

    "completed"  "TASK_STATE_COMPLETED"  "COMPLETED"        "canceled"  "cancelled"
    "agent"      "ROLE_AGENT"
"""

from __future__ import annotations

COMPLETED = "completed"
UNKNOWN = "unknown"
PENDING = frozenset({"submitted", "working"})
INTERRUPTED = frozenset({"input-required", "auth-required"})
RECOGNIZED = PENDING | INTERRUPTED | {COMPLETED, "failed", "canceled", "rejected"}

_ENUM_PREFIX = "task-state-"


def canonical(state: str) -> str:
    """The state as A2A 0.3 spells it; a word that is no state stays as it is, in small letters."""
    if state in RECOGNIZED:
        return state
    word = state.strip().lower().replace("_", "-").removeprefix(_ENUM_PREFIX)
    return "canceled" if word == "cancelled" else word


def shown(state: str) -> str:
    """The state as an operator should read it: the agent's own word, but an enum's name in plain letters."""
    return canonical(state) if state.upper().startswith("TASK_STATE_") else state


def is_agent(role: object) -> bool:
    return role == "agent" or (isinstance(role, str) and role.strip().upper() in ("ROLE_AGENT", "AGENT"))


def is_user(role: object) -> bool:
    return isinstance(role, str) and role.strip().upper() in ("ROLE_USER", "USER")
