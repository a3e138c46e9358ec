"""
Checks whether agents do what their dialect requires, and collects the evidence.

`Checker` sends requests through a `Transport` and makes a `Report` (agents.check_reports) of the answers. What it
sends is defined in plans/, with one module for each kind of dialect and without I/O. The command line checks an address
with it, the server an agent of its registry.
"""

from trunkline.checker.check import PROTOCOLS, Checker
from trunkline.checker.check_definitions import CHECKS, CheckDefinition
from trunkline.checker.session import CheckedAgent, CheckLimits, OnProgress, TokenFor

__all__ = [
    "CHECKS",
    "PROTOCOLS",
    "CheckDefinition",
    "CheckLimits",
    "CheckedAgent",
    "Checker",
    "OnProgress",
    "TokenFor",
]
