"""
The agent kit: turns a function into an agent that speaks Simple A2A, A2A 0.2, 0.3 and 1.0.

    from trunkline.agentkit import Agent

    agent = Agent("Greeter", description="Says hello.")

    @agent
    def greet(task):
        return f"Hello, {task.text}!"

    agent.run(port=8080)

The kit stands alone: it imports nothing else from Trunkline, and besides the standard library only msgspec.
`trunkline.agent` is an alias of this package.

    app.py                              Agent: the ASGI app, its card, the requests that it refuses
    asgi.py                             requests and responses as plain ASGI
    handlers.py, outputs.py             calling the author's function; what it may return, yield or raise
    messages.py, parts.py               what a handler receives
    task_execution.py, task_store.py    one task; all tasks, kept in memory
    jsonrpc.py, dispatcher.py           JSON-RPC: a request becomes a response or a stream
    errors.py, json_values.py           errors that callers get; reading and writing JSON
    protocols/                          how each protocol reads requests and writes tasks; the agent card
"""

from trunkline.agentkit.app import Agent
from trunkline.agentkit.handlers import Task
from trunkline.agentkit.messages import Message
from trunkline.agentkit.outputs import AgentError, Artifact, Question, Rejected, Status
from trunkline.agentkit.parts import Data, File, Text

__all__ = [
    "Agent",
    "AgentError",
    "Artifact",
    "Data",
    "File",
    "Message",
    "Question",
    "Rejected",
    "Status",
    "Task",
    "Text",
]
