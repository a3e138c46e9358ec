"""The report of a check as JSON text, for the routes of the migration."""

from __future__ import annotations

from trunkline.api.resources.checks import check_report
from trunkline.jsontypes import encode
from trunkline.stores.port.agent_events import CheckRecord


def check_json(record: CheckRecord) -> bytes:
    return encode(check_report(record))
