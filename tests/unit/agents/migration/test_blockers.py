"""What blocks a cutover, with the command that removes the blocker as a field."""

from __future__ import annotations

from trunkline.agents import Agent
from trunkline.agents.migration.blockers import blockers_of
from trunkline.clock import Instant


def test_the_command_in_a_fix_is_a_field() -> None:
    agent = Agent(
        id="1",
        name="Kit",
        url="http://a.example/x",
        protocol="simple-a2a",
        created_at=Instant(0),
        updated_at=Instant(0),
    )
    (blocker,) = blockers_of(agent, None, None, {})
    assert blocker.code == "no_target"
    assert blocker.fix_command == "trunkline agents migrate ready Kit --to jsonrpc-2.0 --note TEXT"
    assert blocker.fix == blocker.fix_command
