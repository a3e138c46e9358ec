"""
`trunkline topics`: Kafka topics, created and checked without a server.

The topics have to exist before the first server starts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import JsonFlag
from trunkline.cli.rendering.output import Cell, note, print_json, print_table, status_cell

if TYPE_CHECKING:
    from trunkline import errors, settings
    from trunkline.settings import Settings
    from trunkline.wiring import kafka_messaging
else:
    errors = lazy_module("trunkline.errors")
    kafka_messaging = lazy_module("trunkline.wiring.kafka_messaging")
    settings = lazy_module("trunkline.settings")

Broker = Annotated[
    str | None, Parameter(help="kafka://host:port,host:port. Default: TRUNKLINE_BROKER or trunkline.toml.")
]
Pools = Annotated[
    tuple[str, ...],
    Parameter(
        name="--pool",
        negative="",
        show_default=False,
        help="Include the topic of this pool. Can be repeated.",
    ),
]

app = App(name="topics", help="Create and check Kafka topics.", version_flags=[])


@app.command(name="create")
def create(*, pool: Pools = (), broker: Broker = None, json: JsonFlag = False) -> int:
    """
    Create missing topics, and add missing partitions.

    Names, partitions, replication and retention are settings, such as TRUNKLINE_TASKS_TOPIC and
    TRUNKLINE_TOPIC_PARTITIONS. Existing topics never shrink.
    """
    with explained():
        loaded = _settings(broker)
        made = asyncio.run(kafka_messaging.create_topics(loaded, pool))
    if json:
        items = [{"topic": topic, "result": result} for topic, result in made.items()]
        print_json({"items": items, "next_cursor": None})
    else:
        print_table(("TOPIC", "RESULT"), [[topic, status_cell(result)] for topic, result in made.items()])
    return Exit.OK


@app.command(name="check")
def check(*, pool: Pools = (), broker: Broker = None, json: JsonFlag = False) -> int:
    """
    Check that Kafka is reachable, and that the topics exist with enough partitions.

    Changes nothing. Exits with 6 if Kafka is unreachable, and with 7 if another check fails.
    """
    with explained():
        loaded = _settings(broker)
        found = asyncio.run(kafka_messaging.check_topics(loaded, pool))
    if json:
        print_json({"items": [finding._asdict() for finding in found], "next_cursor": None})
    elif found:
        rows = [
            [finding.topic or "", Cell(finding.problem, "red"), finding.why, finding.fix] for finding in found
        ]
        print_table(("TOPIC", "PROBLEM", "WHY", "FIX"), rows)
    else:
        note(f"Topics are ready: {', '.join(kafka_messaging.topic_names(loaded, pool))}.")
    if any(finding.problem == "unreachable" for finding in found):
        return Exit.UNREACHABLE
    return Exit.INVALID if found else Exit.OK


def _settings(broker: str | None) -> Settings:
    # No store is opened here, so it does not matter that Kafka goes with PostgreSQL only.
    flags = {"store": "postgresql://", "broker": broker}
    loaded = settings.load_settings({name: value for name, value in flags.items() if value is not None})
    if not loaded.uses_kafka:
        raise errors.ConfigurationError(
            "Topics need Kafka, which is not configured.", fix="Set TRUNKLINE_BROKER=kafka://host:port."
        )
    return loaded
