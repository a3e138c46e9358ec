"""
An answer of an A2A 0.2 or 0.3 agent, opened.

    {"jsonrpc": "2.0", "id": "<task id>", "result": a Task or a Message in the exact form of 0.3}   read fast
    {"jsonrpc": "2.0", "id": "<task id>", "result": everything else that agents send}               lenient_parsing.py
"""

from __future__ import annotations

from trunkline.protocols.a2a.v03.lenient_parsing import parse_lenient_result
from trunkline.protocols.a2a.v03.model import V03Result
from trunkline.protocols.a2a.v03.parsed_result import V03ParsedResult, parse_exact_result
from trunkline.protocols.json_rpc.envelope import ExactAnswerReader, RpcError, parse_response

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
