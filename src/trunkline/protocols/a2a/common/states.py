"""
Task states and roles, in every spelling that agents use.

    "TASK_STATE_COMPLETED"  "completed"  "COMPLETED"  3     "TASK_STATE_CANCELED"  "canceled"  "cancelled"  5
    "ROLE_AGENT"  "agent"  2

A number is the value of the enum in the protocol's definition: some encoders write it.
"""

from __future__ import annotations

from trunkline.jsontypes import Json

COMPLETED = "completed"
UNKNOWN = "unknown"
PENDING = frozenset({"submitted", "working"})
INTERRUPTED = frozenset({"input-required", "auth-required"})
TERMINAL = frozenset({COMPLETED, "failed", "canceled", "rejected"})
RECOGNIZED = PENDING | INTERRUPTED | TERMINAL

_PREFIX = "task-state-"
_BY_NAME = {
    **{f"TASK_STATE_{state.replace('-', '_').upper()}": state for state in RECOGNIZED},
    **{state: state for state in RECOGNIZED},
}
_BY_NUMBER = {
    1: "submitted",
    2: "working",
    3: COMPLETED,
    4: "failed",
    5: "canceled",
    6: "input-required",
    7: "rejected",
    8: "auth-required",
}
_AGENT_ROLES = frozenset({"ROLE_AGENT", "AGENT"})
_USER_ROLES = frozenset({"ROLE_USER", "USER"})
_ROLE_NUMBERS = {1: "ROLE_USER", 2: "ROLE_AGENT"}


def canonical_state(state: str) -> str:
    """The state in lower case, without its prefix; an unknown word is returned unchanged."""
    known = _BY_NAME.get(state)
    if known is not None:
        return known
    word = state.strip().lower().replace("_", "-").removeprefix(_PREFIX)
    return "canceled" if word == "cancelled" else word


def state_word(state: Json) -> str | None:
    """The state as a word, when it is one or the number of one."""
    if isinstance(state, str):
        return state or None
    return _BY_NUMBER.get(state) if isinstance(state, int) and not isinstance(state, bool) else None


def displayed_state(state: str) -> str:
    """The state as an operator should read it: the agent's own word, but an enum's name in plain letters."""
    return canonical_state(state) if state.upper().startswith("TASK_STATE_") else state


def role_of(role: Json) -> str | None:
    """The role as a word, when it is one or the number of one."""
    if isinstance(role, int) and not isinstance(role, bool):
        return _ROLE_NUMBERS.get(role)
    return role if isinstance(role, str) else None


def is_agent(role: object) -> bool:
    return role == "ROLE_AGENT" or (isinstance(role, str) and role.strip().upper() in _AGENT_ROLES)


def is_user(role: object) -> bool:
    return role == "ROLE_USER" or (isinstance(role, str) and role.strip().upper() in _USER_ROLES)
