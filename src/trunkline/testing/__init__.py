"""
The test kit: a clock to move, real agents to script, and the whole system in one process.

For Trunkline's own tests and for those of people who write agents and workflows.
"""

from trunkline.testing.agents import (
    Call,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    simple_error,
    simple_success,
)
from trunkline.testing.clock import FakeClock
from trunkline.testing.system import Answer, RunningSystem, running_system

__all__ = [
    "Answer",
    "Call",
    "FakeClock",
    "RunningSystem",
    "ScriptedAgent",
    "jsonrpc_error",
    "jsonrpc_task",
    "running_system",
    "simple_error",
    "simple_success",
]
