"""Numbers of request bodies that JSON Schema calls integers."""

from __future__ import annotations

from trunkline.api.bodies import with_whole_numbers
from trunkline.api.resources.agents.test_calls import AgentMessage


def test_a_whole_float_is_an_integer_where_an_integer_is_expected_and_nowhere_else() -> None:
    body = with_whole_numbers({"timeout_ms": 434.0, "input": 7.0}, AgentMessage)
    assert (body["timeout_ms"], type(body["timeout_ms"])) == (434, int)
    assert type(body["input"]) is float


def test_a_fraction_stays_what_it_is() -> None:
    assert with_whole_numbers({"timeout_ms": 434.5}, AgentMessage) == {"timeout_ms": 434.5}
