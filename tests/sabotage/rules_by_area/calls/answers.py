"""Rules of answers: when an answer is complete, and when it is too large."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop
from tests.sabotage.rule import Rule

_STREAMS = "tests/scenarios/hostile/test_streams.py"
_JSON = "tests/unit/protocols/test_answer_json.py"

ANSWERS: Sequence[Rule] = (
    Rule(
        name="reset-is-not-the-end",
        breaks="An interrupted stream counts as complete.",
        symbol="trunkline.transports.http1.connection:AgentConnection.connection_lost",
        change=Drop("operand", 3, of=9),
        caught_by=(f"{_STREAMS}::test_a_reset_in_the_middle_is_a_lost_connection",),
    ),
    Rule(
        name="values-are-counted",
        breaks="An answer of 15 MB takes a gigabyte of memory and half a minute.",
        symbol="trunkline.protocols.answer_json:JsonReader._read",
        change=Change("operand", 3, of=6, becomes="False"),
        caught_by=(f"{_JSON}::test_more_values_than_anybody_can_use_are_refused_unread",),
    ),
)
