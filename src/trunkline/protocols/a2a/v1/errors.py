"""What A2A 1.0 says of errors, and how it spells what an agent should have said."""

from __future__ import annotations

from trunkline.jsontypes import Json
from trunkline.protocols.a2a.common.outcome import A2AErrorTexts

TEXTS = A2AErrorTexts(
    completed="TASK_STATE_COMPLETED",
    state_fix="Let the agent set status.state to TASK_STATE_COMPLETED when it succeeded.",
    error_fix="Let the agent answer with an error, not with a result, when it failed.",
    error_misplaced="the agent answered with a result instead of an error",
    task_unnamed_fix="Let the agent name its task in task.id, so that it can be asked again.",
)
_INPUT_HINT = (
    "The agent receives the request but can't parse its input: it is the text of message.parts[0], which may "
    "be JSON; protocol_config.input_mode chooses text, json or data."
)
# What to do about an error, by the number that it has in the JSON-RPC binding.
FIX_BY_CODE = {
    -32700: "The agent receives the request but can't parse it: let it accept Content-Type application/json.",
    -32600: _INPUT_HINT,
    -32601: "The agent does not know this operation of A2A 1.0: check its url and its protocol.",
    -32602: _INPUT_HINT,
    -32603: "Look at the agent's log: it failed inside. If it could not read its input, that is the text of "
    "message.parts[0].",
    -32001: "The agent does not know the task any more: start the run again.",
    -32005: "The agent does not take this content type: choose another protocol_config.input_mode.",
    -32008: "The agent insists on an extension of A2A that Trunkline does not speak.",
    -32009: "The agent does not speak A2A 1.0: register it with the protocol that it speaks, or with auto.",
}
# The agent says that it does not know the operation, or not this version of A2A: it has not taken the work.
OTHER_DIALECT = frozenset({-32601, -32009})
UNKNOWN_TASK = -32001
CODE_BY_REASON = {
    "TASK_NOT_FOUND": UNKNOWN_TASK,
    "TASK_NOT_CANCELABLE": -32002,
    "PUSH_NOTIFICATION_NOT_SUPPORTED": -32003,
    "UNSUPPORTED_OPERATION": -32004,
    "CONTENT_TYPE_NOT_SUPPORTED": -32005,
    "INVALID_AGENT_RESPONSE": -32006,
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": -32007,
    "EXTENSION_SUPPORT_REQUIRED": -32008,
    "VERSION_NOT_SUPPORTED": -32009,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL_ERROR": -32603,
}


def reason_in(details: Json) -> str | None:
    """The reason that a `google.rpc.ErrorInfo` among an error's details names."""
    for item in details if isinstance(details, list) else [details]:
        reason = item.get("reason") if isinstance(item, dict) else None
        if isinstance(reason, str) and reason:
            return reason
    return None
