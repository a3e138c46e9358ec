"""Events and signals on the command line."""

from __future__ import annotations

import pytest
from tests.scenarios.cli.test_command_line import Trunkline, trunkline, workflow

pytestmark = pytest.mark.anyio

__all__ = ["trunkline"]


async def test_events_are_sent_listed_and_shown_and_complete_what_waits(trunkline: Trunkline) -> None:
    file = workflow("paid", "pay: {wait_for: {event: payment.received, key: '${ input.order }'}}")
    run_id = (await trunkline("run", file, "-i", "order=42")).out.strip()
    sent = await trunkline(
        "events", "send", "payment.received", "--key", "42", "-i", "amount=7", "--id", "p1"
    )
    watched = await trunkline("runs", "watch", run_id)
    listed = await trunkline("events", "list", "--type", "payment.received", "--key", "42")
    shown = await trunkline("events", "show", "p1")
    assert (sent.out.strip(), watched.code) == ("p1", 0)
    assert "wait_for" in watched.err + watched.out
    assert listed.out.splitlines()[1].split()[:3] == ["p1", "payment.received", "42"]
    assert '"amount": 7' in shown.out
    assert (await trunkline("events", "show", "none")).code == 3


async def test_a_signal_completes_the_step_of_its_run(trunkline: Trunkline) -> None:
    file = workflow("approved", "wait: {wait_for: {signal: approved}}")
    run_id = (await trunkline("run", file)).out.strip()
    signalled = await trunkline("runs", "signal", run_id, "approved", "--data", '{"by": "Ada"}', "--json")
    watched = await trunkline("runs", "watch", run_id)
    listed = await trunkline("events", "list", "--run", run_id, "--json")
    assert (signalled.code, watched.code) == (0, 0)
    assert str(signalled.json["id"]) in listed.out
    assert (await trunkline("runs", "signal", run_id, "approved")).code == 4
