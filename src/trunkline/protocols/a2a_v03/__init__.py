"""
JSON-RPC 2.0 as A2A 0.2 and 0.3 use it: the seeds' `jsonrpc-2.0`.

    request.py    AgentTask -> message/send, tasks/get, tasks/cancel
    envelope.py   the answer's jsonrpc, id, result and error
    reading.py    a result in the exact form of 0.3, read fast; every other form through tolerant.py
    outcome.py    what state, parts and errors mean for the step
    output.py     the step's output
"""

from trunkline.protocols.a2a_v03.adapter import JsonRpc2Adapter

__all__ = ["JsonRpc2Adapter"]
