"""
The test kit: a clock to move, real agents to script, and the whole system in one process.

For Trunkline's own tests and for those of people who write agents and workflows.
"""

from trunkline.testing.agents import (
    Call,
    EndlessReply,
    Hangup,
    Reply,
    ScriptedAgent,
    Stream,
    jsonrpc_error,
    jsonrpc_task,
    simple_error,
    simple_success,
)
from trunkline.testing.clock import FakeClock
from trunkline.testing.system import Answer, RunningSystem, error_of, objects_in, running_system, step_of

__all__ = [
    "Answer",
    "Call",
    "EndlessReply",
    "FakeClock",
    "Hangup",
    "Reply",
    "RunningSystem",
    "ScriptedAgent",
    "Stream",
    "error_of",
    "jsonrpc_error",
    "jsonrpc_task",
    "objects_in",
    "running_system",
    "simple_error",
    "simple_success",
    "step_of",
]
