"""How an agent's limits stand, on the terminal."""

from __future__ import annotations

import pytest

from trunkline.api.resources.agents.limits import AgentLimits
from trunkline.cli.rendering.agent import print_limits
from trunkline.cli.rendering.times import date_time


def shown(capsys: pytest.CaptureFixture[str], limits: AgentLimits) -> list[list[str]]:
    print_limits(limits)
    return [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]


def test_an_agent_without_limits_shows_only_its_load(capsys: pytest.CaptureFixture[str]) -> None:
    limits: AgentLimits = {"in_flight": 2, "queued": 3, "breaker": None, "rate": None}
    assert shown(capsys, limits) == [[], ["in", "flight", "2"], ["queued", "3"]]


def test_an_open_breaker_says_why_and_until_when(capsys: pytest.CaptureFixture[str]) -> None:
    print_limits(
        {
            "in_flight": 0,
            "queued": 7,
            "breaker": {
                "state": "half_open",
                "failures": 5,
                "opened_at": "2026-03-01T12:00:00.000000Z",
                "retry_at": "2026-03-01T12:00:30.000000Z",
                "reason": "5 consecutive failures, the last one: HTTP 503",
            },
            "rate": {"per_second": 5.0, "burst": 10, "tokens": 4},
        }
    )
    out = capsys.readouterr().out
    assert "4 of 10" in out
    assert "half-open" in out
    assert date_time("2026-03-01T12:00:30Z") in out
    assert "5 consecutive failures, the last one: HTTP 503" in out


def test_a_closed_breaker_has_no_times(capsys: pytest.CaptureFixture[str]) -> None:
    closed: AgentLimits = {
        "in_flight": 0,
        "queued": 0,
        "breaker": {
            "state": "closed",
            "failures": 1,
            "opened_at": None,
            "retry_at": None,
            "reason": None,
        },
        "rate": None,
    }
    print_limits(closed)
    out = capsys.readouterr().out
    assert "closed" in out
    assert "again" not in out
