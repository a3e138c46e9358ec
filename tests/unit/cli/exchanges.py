"""An exchange with an agent, as the REST interface returns it."""

from __future__ import annotations

from typing import cast

from trunkline.api.resources.exchanges import ExchangeResource


def exchange(**fields: object) -> ExchangeResource:
    known: dict[str, object] = {
        "step": "write",
        "attempt": 2,
        "started_at": "2026-03-01T12:00:00.123456Z",
        "duration_ms": 1234.5,
        "request": {"method": "POST", "url": "http://host/agent", "headers": {"A": "b"}, "body": '{"q":1}'},
        "response": {"status": 200, "headers": {"c": "d"}, "body": "fine"},
        "error": None,
        "notes": [],
    }
    return cast("ExchangeResource", known | fields)
