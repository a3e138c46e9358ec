"""
An answer of the JSON-RPC binding, opened.

    {"jsonrpc": "2.0", "id": "<task id>", "result": the exact form of 1.0}                read fast
    {"jsonrpc": "2.0", "id": "<task id>", "result": everything else that agents send}     lenient_parsing.py
    {"jsonrpc": "2.0", "id": "<task id>", "error": {"code": -32001, "message": "…", "data": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "…"}]}}
"""

from __future__ import annotations

from trunkline.jsontypes import Json
from trunkline.protocols.a2a.v1.errors import (
    CODE_BY_REASON,
    FIX_BY_CODE,
    OTHER_DIALECT,
    UNKNOWN_TASK,
    reason_in,
)
from trunkline.protocols.a2a.v1.lenient_parsing import parse_lenient_result
from trunkline.protocols.a2a.v1.model import V1Result
from trunkline.protocols.a2a.v1.parsed_result import V1ParsedResult, parse_exact_result
from trunkline.protocols.json_rpc.envelope import (
    ExactAnswerReader,
    RpcError,
    failed_by_rpc_error,
    parse_response,
)
from trunkline.protocols.outcomes import Failed

_answers = ExactAnswerReader(V1Result)


def parse_result(body: bytes, task_id: str, protocol: str) -> V1ParsedResult | Failed:
    """What the answer says; raises `NotJson` or `ProtocolTranslationError`."""
    exact = _answers.read(body, task_id, protocol)
    reading = None if exact is None else parse_exact_result(exact)
    if reading is not None:
        return reading
    answer = parse_response(body, task_id, protocol)
    return _failed(answer) if isinstance(answer, RpcError) else parse_lenient_result(answer.value)


def parse_task_list(body: bytes, task_id: str, protocol: str) -> Json | Failed:
    """The result as it is; raises as `parse_result` does."""
    answer = parse_response(body, task_id, protocol)
    return _failed(answer) if isinstance(answer, RpcError) else answer.value


def _failed(error: RpcError) -> Failed:
    if error.code is None:
        error.code = CODE_BY_REASON.get(reason_in(error.data) or "")
    return failed_by_rpc_error(error, FIX_BY_CODE, OTHER_DIALECT, UNKNOWN_TASK)
