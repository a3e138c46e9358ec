"""
The `topics` commands.

They talk to Kafka and need no server: the topics have to be there before the first one starts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.options import JsonFlag
from trunkline.cli.rendering.output import Cell, note, print_json, print_table, status_cell

if TYPE_CHECKING:
    from trunkline.settings import Settings

Broker = Annotated[
    str | None, Parameter(help="kafka://host:port,host:port. Default: TRUNKLINE_BROKER or trunkline.toml.")
]
Pools = Annotated[
    tuple[str, ...],
    Parameter(name="--pool", negative="", help="Also the topic of this pool; may be repeated."),
]


def create(*, pool: Pools = (), broker: Broker = None, json: JsonFlag = False) -> int:
    """
    Make the topics that are missing, and add partitions to those that have too few.

    Names, partitions, replication and retention are settings (TRUNKLINE_TASKS_TOPIC, TRUNKLINE_TOPIC_PARTITIONS and
    so on). What exists is never made smaller.
    """
    with explained():
        settings = _settings(broker)
        from trunkline.wiring.topics import create_topics  # noqa: PLC0415  (heavy; few commands need it)

        made = asyncio.run(create_topics(settings, pool))
    if json:
        items = [{"topic": topic, "result": result} for topic, result in made.items()]
        print_json({"items": items, "next_cursor": None})
    else:
        print_table(("TOPIC", "RESULT"), [[topic, status_cell(result)] for topic, result in made.items()])
    return Exit.OK


def check(*, pool: Pools = (), broker: Broker = None, json: JsonFlag = False) -> int:
    """
    Check that Kafka can be reached, and that the topics are there and have their partitions.

    Changes nothing. Exits with 6 when Kafka cannot be reached, with 7 when something else is wrong.
    """
    with explained():
        settings = _settings(broker)
        from trunkline.wiring.topics import check_topics, topic_names  # noqa: PLC0415  (heavy; few commands need it)

        found = asyncio.run(check_topics(settings, pool))
    if json:
        print_json({"items": [trouble._asdict() for trouble in found], "next_cursor": None})
    elif found:
        rows = [
            [trouble.topic or "", Cell(trouble.problem, "red"), trouble.why, trouble.fix] for trouble in found
        ]
        print_table(("TOPIC", "PROBLEM", "WHY", "FIX"), rows)
    else:
        note(f"All is well with {', '.join(topic_names(settings, pool))}.")
    if any(trouble.problem == "unreachable" for trouble in found):
        return Exit.UNREACHABLE
    return Exit.INVALID if found else Exit.OK


def _settings(broker: str | None) -> Settings:
    from trunkline.settings import load_settings  # noqa: PLC0415  (heavy; few commands need it)

    # No store is opened here, so it does not matter that Kafka goes with PostgreSQL only.
    flags = {"store": "postgresql://", "broker": broker}
    return load_settings({name: value for name, value in flags.items() if value is not None})
