"""What `agents show` prints of an agent's dialect and its evidence."""

from __future__ import annotations

from typing import cast

import pytest

from trunkline.api.resources.agents.registry import AgentMetadataResource
from trunkline.cli.options import Server
from trunkline.cli.rendering.agent import print_agent
from trunkline.cli.rendering.times import date_time

AGENT: AgentMetadataResource = {
    "id": "1",
    "name": "Agent",
    "url": "http://a.example/x",
    "protocol": "auto",
    "protocol_config": None,
    "description": None,
    "auth_type": "none",
    "timeout_ms": 30_000,
    "retry": None,
    "max_concurrency": 100,
    "pool": None,
    "transport": "https",
    "resend": "ask_first",
    "endpoint_override": None,
    "allow_card_origin": [],
    "rate": None,
    "breaker": None,
    "repeatable": False,
    "cost": None,
    "publish": None,
    "tags": [],
    "skills": [],
    "created_at": "2026-03-01T11:00:00.000000Z",
    "updated_at": "2026-03-01T12:00:00.000000Z",
    "dialect": {
        "protocol": "a2a-1.0",
        "url": "http://a.example/rpc",
        "evidence": "The card offers A2A 1.0 over JSON-RPC",
        "decided_at": "2026-03-01T12:00:00.000000Z",
        "card_url": "http://a.example/.well-known/agent-card.json",
        "card_etag": 'W/"7"',
        "card_digest": None,
        "streams": True,
        "pushes": False,
        "tenant": None,
        "tried": [
            {"at": "2026-03-01T12:00:00.000000Z", "tried": "GET /x/card", "answered": "HTTP 404"},
            {"at": "2026-03-01T12:00:01.000000Z", "tried": "GET /card", "answered": "HTTP 200, a card"},
        ],
    },
}


def lines_of(agent: AgentMetadataResource, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_agent(agent, Server())
    return capsys.readouterr().out.splitlines()


def test_the_evidence_is_a_table_of_what_was_tried(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(AGENT, capsys)
    assert "evidence            The card offers A2A 1.0 over JSON-RPC" in lines
    assert 'card etag           W/"7"' in lines
    assert "streaming           yes" in lines
    assert "push notifications  no" in lines
    table = lines[lines.index(next(line for line in lines if line.startswith("TIME"))) :]
    assert [line.split("  ", maxsplit=1) for line in table] == [
        ["TIME", "               REQUEST      RESPONSE"],
        [date_time("2026-03-01T12:00:00Z"), "GET /x/card  HTTP 404"],
        [date_time("2026-03-01T12:00:01Z"), "GET /card    HTTP 200, a card"],
    ]


def test_fields_that_hold_more_than_a_word_are_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    told: AgentMetadataResource = {**AGENT, "protocol_config": {"input_mode": "json"}}
    lines = lines_of(
        cast("AgentMetadataResource", {**told, "allow_card_origin": ["http://b", "http://c"], "none": []}),
        capsys,
    )
    assert 'protocol config    {"input_mode": "json"}' in lines
    assert "timeout            30s" in lines
    assert "repeatable         no" in lines
    assert f"created at         {date_time(AGENT['created_at'])}" in lines
    assert "allow card origin  http://b, http://c" in lines
    assert not any(line.startswith("none") for line in lines)


def test_an_agent_without_a_call_has_no_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of({**AGENT, "dialect": None}, capsys)
    assert "url              http://a.example/x" in lines
    assert not any(line.startswith(("detected", "TIME")) for line in lines)
