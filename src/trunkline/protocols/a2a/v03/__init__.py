"""
JSON-RPC 2.0 as A2A 0.2 and 0.3 use it: `jsonrpc-2.0`, and `a2a-0.3` and `a2a-0.2`, which also stream.

    jsonrpc2_adapter.py, a2a_adapter.py   the adapters
    request.py           AgentTask -> message/send, message/stream, tasks/get, tasks/cancel, tasks/resubscribe
    parts.py             the parts of a message
    envelope.py          the answer's jsonrpc, id, result and error
    parsed_result.py     a result in the exact form of 0.3; lenient_parsing.py reads every other form
    outcome.py           what state, parts and errors mean for the step
    stream.py            the events of a stream, folded into a Task
"""

from trunkline.protocols.a2a.v03.a2a_adapter import A2AV02Adapter, A2AV03Adapter
from trunkline.protocols.a2a.v03.jsonrpc2_adapter import OPTIONS, JsonRpc2Adapter

__all__ = ["OPTIONS", "A2AV02Adapter", "A2AV03Adapter", "JsonRpc2Adapter"]
