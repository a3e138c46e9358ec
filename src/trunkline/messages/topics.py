"""The names of the topics."""

from __future__ import annotations

import msgspec


class TopicNames(msgspec.Struct, frozen=True, kw_only=True):
    tasks: str = "trunkline.tasks"
    results: str = "trunkline.results"
    events: str = "trunkline.events"
    commands: str = "trunkline.commands"

    def tasks_of(self, pool: str | None) -> str:
        return self.tasks if pool is None else f"{self.tasks}.{pool}"
