"""`trunkline system`: the status of the system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import Cell, note, print_fields, print_json, print_table, print_text
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.api.resources.system import Consumers, Count, Dependency, ProcessResource, SystemState

# Where the word for people differs from the name in REST and metrics.
_QUEUE_NAMES = {
    "inbox": "queued inputs",
    "tasks_claimed": "calls in progress",
    "tasks_remote": "remote tasks",
    "tasks_without_secret": "tasks without credentials",
}


def system(*, server: Server = HERE) -> int:
    """
    Show the status of the system: dependencies, processes and queues.

    Exits with 6 if the system does not accept work. To check this machine, use trunkline doctor.
    """
    state = server.client().system()
    if server.json:
        print_json(state)
    else:
        _show(state)
    return Exit.OK if state["ready"] else Exit.UNREACHABLE


def _show(state: SystemState) -> None:
    print_fields(
        [
            ("ready", "yes" if state["ready"] else "no"),
            ("version", state["version"]),
            ("mode", state["mode"]),
            ("store", state["store"]),
            ("broker", state["broker"]),
        ]
    )
    print_text("")
    print_table(("DEPENDENCY", "RESULT", "DETAIL"), [_dependency(each) for each in state["dependencies"]])
    if state["processes"] is not None:
        print_text("")
        print_table(
            ("PROCESS", "STATE", "ROLES", "VERSION", "STARTED", "LAST SEEN"),
            [_process(each) for each in state["processes"]],
        )
    if state["runs"] is not None and state["queues"] is not None:
        print_text("")
        print_table([each["name"] for each in state["runs"]], [[_number(each) for each in state["runs"]]])
        print_text("")
        waiting = [[_queue_name(each["name"]), _number(each)] for each in state["queues"]]
        print_table(("QUEUE", "LENGTH"), waiting)
    if state["consumers"] is not None:
        print_text("")
        print_table(
            ("TOPIC", "GROUP", "LAG", "PARTITIONS"), [_consumers(each) for each in state["consumers"]]
        )
        for trouble in dict.fromkeys(each["detail"] for each in state["consumers"] if each["detail"]):
            note(f"warning: {trouble}")
    for warning in state["warnings"]:
        note(f"warning: {warning}")


def _dependency(dependency: Dependency) -> list[str | Cell]:
    return [
        dependency["name"],
        Cell("ok", "green") if dependency["ok"] else Cell("FAIL", "red"),
        dependency["detail"] or "",
    ]


def _process(process: ProcessResource) -> list[str | Cell]:
    pool = "" if process["pool"] is None else f" (pool {process['pool']})"
    return [
        process["name"],
        Cell("alive", "green") if process["alive"] else Cell("not responding", "red"),
        ", ".join(process["roles"]) + pool,
        process["version"],
        date_time(process["started_at"]),
        date_time(process["seen_at"]),
    ]


def _consumers(consumers: Consumers) -> list[str | Cell]:
    waiting, partitions = consumers["waiting"], consumers["partitions"]
    return [
        consumers["topic"],
        consumers["group"],
        Cell("unknown", "red") if waiting is None else f"{waiting:,}",
        "" if partitions is None else str(partitions),
    ]


def _queue_name(name: str) -> str:
    return _QUEUE_NAMES.get(name, name.replace("_", " "))


def _number(count: Count) -> str:
    return f"{count['count']:,}{'' if count['exact'] else '+'}"
