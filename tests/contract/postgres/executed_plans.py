"""
The plans with which PostgreSQL has really executed statements, written by `auto_explain` into its log.

`EXPLAIN` would plan for the values of one call; the store's statements are planned for whatever values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

from deploy.local.postgres import PostgresServer

_SETTINGS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_format": "json",
}
_PLAN = re.compile(r"LOG:  duration: [0-9.]+ ms  plan:\n((?:\t.*\n)+)")


class ExecutedStatement(NamedTuple):
    text: str
    # The root of its plan, with those of its subplans in it.
    plan: dict[str, Any]

    def nodes(self) -> Generator[dict[str, Any]]:
        waiting = [self.plan]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.get("Plans", ())

    def rows_read(self) -> int:
        """By scans of tables and indexes, whether they were of use or not."""
        return round(sum(_read(node) for node in self.nodes() if "Relation Name" in node))

    def pages_read(self) -> int:
        return self.plan["Shared Hit Blocks"] + self.plan["Shared Read Blocks"]

    def scanned_whole(self) -> set[str]:
        """The tables that were read from one end to the other."""
        return {
            node["Relation Name"]
            for node in self.nodes()
            if node["Node Type"] == "Seq Scan" and node["Actual Loops"]
        }


def _read(node: dict[str, Any]) -> float:
    removed = sum(value for key, value in node.items() if key.startswith("Rows Removed by"))
    return node["Actual Loops"] * (node["Actual Rows"] + removed)


def record_plans(server: PostgresServer, database: str) -> None:
    """From the next connection to this database on."""
    server.execute(
        ";".join(f"ALTER DATABASE \"{database}\" SET {name} = '{value}'" for name, value in _SETTINGS.items())
    )


def executed_statements(log: Path, start: int) -> list[ExecutedStatement]:
    """All whose plans were recorded behind this place, in their order."""
    with log.open("rb") as file:
        file.seek(start)
        text = file.read().decode()
    plans = (json.loads(match[1]) for match in _PLAN.finditer(text))
    return [ExecutedStatement(" ".join(plan["Query Text"].split()), plan["Plan"]) for plan in plans]
