"""What A2A 1.0 says of errors, and how it spells what an agent should have said."""

from __future__ import annotations

from trunkline.jsontypes import Json
from trunkline.protocols.a2a.common.outcome import A2AErrorTexts

TEXTS = A2AErrorTexts(
    completed="TASK_STATE_COMPLETED",
    state_fix="Change the agent to set status.state to TASK_STATE_COMPLETED when it succeeds.",
    error_fix="Change the agent to respond with an error, not with a result, when it fails.",
    error_misplaced="the agent answered with a result instead of an error",
    task_unnamed_fix="Change the agent to return its task id in task.id, so that Trunkline can poll the task.",
)
_INPUT_HINT = (
    "The agent receives the request but can't parse its input: it is the text of message.parts[0], which may "
    "be JSON; protocol_config.input_mode chooses text, json or data."
)
# What to do about an error, by the number that it has in the JSON-RPC binding.
FIX_BY_CODE = {
    -32700: "The agent receives the request but can't parse it: let it accept Content-Type application/json.",
    -32600: _INPUT_HINT,
    -32601: "The agent does not support this A2A 1.0 operation. Check its url and its protocol.",
    -32602: _INPUT_HINT,
    -32603: "Check the agent's log: the agent failed with an internal error. If it could not read its input, "
    "that is the text of message.parts[0].",
    -32001: "The agent no longer has the task. Start the run again.",
    -32005: "The agent does not accept this content type. Choose another protocol_config.input_mode.",
    -32008: "The agent requires an A2A extension that Trunkline does not support.",
    -32009: "The agent does not support A2A 1.0. Register it with the protocol that it supports, or with auto.",
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
