"""
Checks agents: whether one does what its dialect asks for, with the evidence.

`Checker` sends requests through a `Transport` and makes a `Report` (agents.check_reports) of the answers; what is asked
stands in plans/, one module for each kind of dialect, and is pure. The command line checks an address with it, the
server an agent of its registry.
"""

from trunkline.checker.check import PROTOCOLS, Checker
from trunkline.checker.check_definitions import CHECKS, CheckDefinition
from trunkline.checker.checked_agent import CheckedAgent, CheckLimits, TokenFor
from trunkline.checker.session import OnProgress

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
