"""
An answer of an A2A 0.2 or 0.3 agent, and what it means for the step.

    {"jsonrpc": "2.0", "id": "<task id>", "result": a Task or a Message in the exact form of 0.3}   read fast
    {"jsonrpc": "2.0", "id": "<task id>", "result": everything else that agents send}               lenient_parsing.py

    result    as `a2a_task.outcome` has it, or any value where that is wanted
    error     Failed: "JSON-RPC Error <code>: <message>"
"""

from __future__ import annotations

from trunkline.protocols.a2a.common.outcome import A2AErrorTexts, outcome_of
from trunkline.protocols.a2a.v03.lenient_parsing import parse_lenient_result
from trunkline.protocols.a2a.v03.model import V03Result
from trunkline.protocols.a2a.v03.parsed_result import V03ParsedResult, parse_exact_result
from trunkline.protocols.json_rpc.envelope import (
    ExactAnswerReader,
    RpcError,
    failed_by_rpc_error,
    parse_response,
    raw_result,
)
from trunkline.protocols.outcomes import Outcome, Succeeded
from trunkline.protocols.outputs import OutputMode, encode_output, output_from_value

_answers = ExactAnswerReader(V03Result)


def parse_exact_answer(body: bytes, task_id: str, protocol: str) -> V03ParsedResult | None:
    """What an answer in the exact form says; None when it needs a closer look."""
    exact = _answers.read(body, task_id, protocol)
    return None if exact is None else parse_exact_result(exact)


def parse_answer(body: bytes, task_id: str, protocol: str) -> V03ParsedResult | RpcError:
    """What the answer says; raises `NotJson` or `ProtocolTranslationError`."""
    reading = parse_exact_answer(body, task_id, protocol)
    if reading is not None:
        return reading
    answer = parse_response(body, task_id, protocol)
    return answer if isinstance(answer, RpcError) else parse_lenient_result(answer.value)


_TEXTS = A2AErrorTexts(
    completed="completed",
    state_fix="Change the agent to set status.state to the exact string 'completed' when it succeeds.",
    error_fix="Change the agent to report failures in the JSON-RPC 'error' object, not in 'result'.",
    error_misplaced="the agent used 'result' instead of 'error' for a failure",
    task_unnamed_fix="Change the agent to return its task id in result.id, so that Trunkline can poll the task.",
)
_INPUT_HINT = (
    "The agent receives the request but can't parse its input: it is the text of params.message.parts[0], "
    "which may be JSON; protocol_config.input_mode chooses text, json or data."
)
_FIX_BY_CODE = {
    -32700: "The agent receives the request but can't parse it: let it accept Content-Type application/json.",
    -32600: _INPUT_HINT,
    -32601: "The agent does not support the method. Check protocol_config.method and the agent's protocol.",
    -32602: _INPUT_HINT,
    -32603: "Check the agent's log: the agent failed with an internal error. If it could not read its input, "
    "that is the text of params.message.parts[0].",
    -32001: "The agent no longer has the task. Start the run again.",
    -32005: "The agent does not accept this content type. Choose another protocol_config.input_mode.",
}
# The agent says that it does not know the method, or not this version of A2A: it has not taken the work.
_OTHER_DIALECT = frozenset({-32601, -32009})
_UNKNOWN_TASK = -32001


def outcome_of_answer(
    answer: V03ParsedResult | RpcError, body: bytes, mode: OutputMode, *, any_result: bool
) -> Outcome:
    """What an answer means; with `any_result` a result that is not A2A's is an output as it is."""
    if isinstance(answer, RpcError):
        return failed_by_rpc_error(answer, _FIX_BY_CODE, _OTHER_DIALECT, _UNKNOWN_TASK)
    if any_result and not answer.certain:
        return _succeeded_with_value(body, mode)
    return outcome_of(answer, lambda: bytes(raw_result(body)), mode, _TEXTS)


def _succeeded_with_value(body: bytes, mode: OutputMode) -> Succeeded:
    value = raw_result(body)
    shaped = output_from_value(value)
    return Succeeded(output=bytes(value) if shaped is None else encode_output(shaped, mode, []))
