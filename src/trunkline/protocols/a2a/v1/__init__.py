"""
A2A 1.0, in its two bindings: JSON-RPC (`a2a-1.0`) and HTTP+JSON (`a2a-1.0-http`).

    adapter_base.py      what both bindings share; jsonrpc_adapter.py and http_adapter.py are the two
    jsonrpc_answers.py, http_answers.py   an answer of either binding, parsed
    request.py           AgentTask -> the message, and what else a request says
    parsed_result.py     a result in the exact form of 1.0
    lenient_parsing.py   every other form, into the same parsed result; lenient_parts.py its parts
    artifacts.py         the pieces of artifacts, put together
    errors.py            error codes, and what to do about each
    stream.py            a task from the events of a stream
    task_lookup.py       our task among those that an agent lists
"""

from trunkline.protocols.a2a.v1.http_adapter import A2A10HttpAdapter
from trunkline.protocols.a2a.v1.jsonrpc_adapter import A2A10Adapter

# All that any of the two knows.
OPTIONS = A2A10Adapter.known_options

__all__ = ["OPTIONS", "A2A10Adapter", "A2A10HttpAdapter"]
