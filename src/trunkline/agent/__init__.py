"""
The agent kit: a function becomes an agent that every caller understands, whether moved to A2A yet or not.

    from trunkline.agent import Agent

    agent = Agent("Greeter", description="Says hello.")

    @agent
    def greet(task):
        return f"Hello, {task.text}!"

    agent.run(port=8080)

It stands alone: nothing of the rest of Trunkline is imported, and beside the standard library only msgspec.

    app.py                   Agent: the ASGI app, its card, what is refused at the door
    handlers.py              the forms of handlers, and what becomes of what they return, yield or raise
    answers.py, messages.py, parts.py   what a handler gives, and what it gets
    work.py, shelf.py        one task; all of them, kept in memory
    calls.py, rpc.py         JSON-RPC: a call becomes an answer or a stream
    dialect.py, a2a_v03.py, a2a_v1.py, simple_a2a.py, lists.py, cards.py   what is spoken
"""

from trunkline.agent.answers import AgentError, Artifact, Question, Rejected, Status
from trunkline.agent.app import Agent
from trunkline.agent.handlers import Task
from trunkline.agent.messages import Message
from trunkline.agent.parts import Data, File, Text

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
