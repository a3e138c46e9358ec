"""
A2A 1.0, in its two bindings: JSON-RPC (`a2a-1.0`) and HTTP+JSON (`a2a-1.0-http`).

    request.py      AgentTask -> the message, and what else a request says
    dialect.py      what both bindings share; adapter.py and http_adapter.py are the two
    jsonrpc_side.py, http_side.py   an answer of either binding, opened
    reading.py      a result in the exact form of 1.0, read fast
    tolerant.py     every other form, into the same reading; loose_parts.py its parts
    artifacts.py    the pieces of artifacts, put together
    outcome.py      what state, parts and errors mean for the step
    output.py       the step's output
    stream.py       a task from the events of a stream
    find.py         our task among those that an agent lists
"""

from trunkline.protocols.a2a_v1.adapter import A2A10Adapter
from trunkline.protocols.a2a_v1.http_adapter import A2A10HttpAdapter

# All that any of the two knows.
SETTINGS = A2A10Adapter.settings

__all__ = ["SETTINGS", "A2A10Adapter", "A2A10HttpAdapter"]
