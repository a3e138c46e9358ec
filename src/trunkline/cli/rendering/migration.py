"""Migrations of agents, as the commands print them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from trunkline.cli.rendering.output import Cell, note, print_fields, print_table, print_text
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.api.resources.agents.migration import (
        AgentEventResource,
        Comparison,
        MigrationChange,
        MigrationEntry,
        MigrationOutcome,
        MigrationStateResource,
        MigrationStatus,
    )
    from trunkline.jsontypes import JsonObject


_STAGE_STYLES = {
    "planned": "dim",
    "shadow": "cyan",
    "canary": "yellow",
    "cut_over": "green",
    "finished": "green",
    "rolled_back": "red",
}


def print_plan(entries: Sequence[MigrationEntry]) -> None:
    """Each agent in a line, then the expressions of workflows whose values would change."""
    rows = [
        [
            entry["agent"],
            entry["in_use"] or f"{entry['protocol']} (not detected yet)",
            ", ".join(offer["protocol"] for offer in entry["offers"]),
            _stage(entry["migration"]),
            _check(entry),
            ", ".join(blocker["code"] for blocker in entry["blockers"]),
        ]
        for entry in entries
    ]
    print_table(("AGENT", "PROTOCOL", "OFFERS", "STAGE", "LAST CHECK", "BLOCKED BY"), rows)
    for entry in entries:
        for read in entry["expressions"]:
            print_text(
                f"{entry['agent']}: {read['workflow']} v{read['version']} {read['place']}:"
                f" {read['expression']}: {read['why']}"
            )


def print_blockers(entry: MigrationEntry) -> None:
    proposed = entry["input_mode"]
    if proposed is not None:
        print_text(f"input_mode of the target: {proposed['mode']}. {proposed['why']}")
    for blocker in entry["blockers"]:
        print_text(f"{blocker['blocks']} is blocked: {blocker['message']}")
        print_text(f"  fix: {blocker['fix']}")


def print_status(status: MigrationStatus, comparisons: Sequence[Comparison]) -> None:
    migration = status["migration"]
    print_fields([("agent", status["agent"]), ("protocol", status["in_use"]), ("url", status["url"])])
    if migration is None:
        print_text("No migration.")
    else:
        print_fields(migration_fields(migration))
    event = status["event"]
    if event is not None:
        print_fields([("since", date_time(event["at"])), ("by", event["who"]), ("note", event["why"])])
    if status["last_check"] is not None:
        print_fields([("last check", _check(status))])
    if status["old_runs"]:
        print_fields([("unfinished runs from before the cutover", status["old_runs"])])
    print_blockers(status)
    if status["calls"]:
        print_text("")
        rows = [
            [
                endpoint,
                str(calls["calls"]),
                str(calls["failed"]),
                _ms(calls["median_ms"]),
                _ms(calls["slowest_ms"]),
            ]
            for endpoint, calls in (("old", status["calls"].get("old")), ("new", status["calls"].get("new")))
            if calls is not None
        ]
        print_table(("SIDE", "CALLS", "FAILED", "MEDIAN", "SLOWEST"), rows)
    if status["comparisons"]:
        print_text("")
        print_table(
            ("VERDICT", "RESPONSES"),
            [[verdict, str(number)] for verdict, number in status["comparisons"].items()],
        )
    _print_differences(comparisons)


def _print_differences(comparisons: Sequence[Comparison]) -> None:
    rows: list[list[str]] = []
    for found in comparisons:
        compared = found["comparison"]
        place = [found["run"], found["step"], found["verdict"]]
        if compared.get("new_error"):
            rows.append([*place, "", _text(compared, "old_error"), _text(compared, "new_error")])
        match compared.get("differences"):
            case [*differences]:
                rows += [
                    [*place, *(_text(one, part) for part in ("path", "old", "new"))]
                    for one in differences
                    if isinstance(one, dict)
                ]
            case _:
                pass
    if rows:
        print_text("")
        print_table(("RUN", "STEP", "VERDICT", "PATH", "OLD", "NEW"), rows)


def _text(holder: JsonObject, name: str) -> str:
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def print_agent_events(events: Sequence[AgentEventResource]) -> None:
    rows = [
        [str(event["id"]), date_time(event["at"]), event["agent"], _what(event), event["who"], event["why"]]
        for event in events
    ]
    print_table(("EVENT", "TIME", "AGENT", "CHANGE", "WHO", "NOTE"), rows)


def print_change(change: MigrationChange) -> None:
    if change["event"] is None:
        note(f"No change for {change['agent']}")
    print_fields([("agent", change["agent"]), *migration_fields(change["migration"])])


def print_outcome(outcome: MigrationOutcome) -> None:
    rows = [
        [change["agent"], _stage(change["migration"]), _place(change["migration"])]
        for change in outcome["changed"]
    ]
    if rows:
        print_table(("AGENT", "STAGE", "TARGET"), rows)
    for refusal in outcome["refused"]:
        note(f"rejected for {refusal['agent']}: {refusal['message']}")
        note(f"  fix: {refusal['fix']}")
    for left in outcome["left_alone"]:
        note(f"skipped {left['agent']}: {left['message']}")
        note(f"  fix: {left['fix']}")
    if not rows and not outcome["refused"] and not outcome["left_alone"]:
        note("Nothing to do.")


def migration_fields(migration: MigrationStateResource) -> list[tuple[str, object]]:
    ready, target = migration["ready"], migration["target"]
    share = migration["stage"] in {"shadow", "canary"}
    return [
        ("stage", migration["stage"].replace("_", " ")),
        ("target", _place(migration)),
        ("config", None if target is None else _config(target["protocol_config"])),
        ("percent", f"{migration['percent']:g}" if share else None),
        ("ready", None if ready is None else f"{ready['note']} ({ready['who']}, {date_time(ready['at'])})"),
        ("forced", "yes" if migration["forced"] else None),
    ]


def _config(config: JsonObject | None) -> str:
    return json.dumps(config, ensure_ascii=False) if config else ""


def _place(migration: MigrationStateResource) -> str:
    target = migration["target"]
    return "" if target is None else f"{target['protocol']} at {target['url']}"


def _stage(migration: MigrationStateResource | None) -> Cell:
    if migration is None:
        return Cell("")
    stage = migration["stage"]
    share = f" {migration['percent']:g} %" if stage in {"shadow", "canary"} else ""
    return Cell(stage.replace("_", " ") + share, _STAGE_STYLES.get(stage, ""))


def _check(entry: MigrationEntry) -> str:
    check = entry["last_check"]
    return "" if check is None else f"{check['grade']} {check['protocol']} {date_time(check['at'])}"


def _what(event: AgentEventResource) -> str:
    stage = event["data"].get("stage") if event["kind"] == "migration" else None
    return str(stage if stage is not None else event["kind"]).replace("_", " ")


def _ms(number: int | None) -> str:
    return "" if number is None else f"{number} ms"
