"""Push notification configs of a published task: which fail, enabling them again, and deleting them."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, RunArgument, Server
from trunkline.cli.rendering.output import note, print_json, print_table

_COLUMNS = ("CONFIG", "RECEIVER", "VERSION", "STATE", "WAITING", "FAILURES", "LAST ERROR")


def push_configs(
    run: RunArgument,
    /,
    *,
    enable: Annotated[str | None, Parameter(name="--enable", help="ID of a config to enable first.")] = None,
    delete: Annotated[str | None, Parameter(name="--delete", help="ID of a config to delete first.")] = None,
    server: Server = HERE,
) -> int:
    """
    List the push notification configs of a published task.

    A config is disabled after too many failed attempts in a row. --enable sends its waiting notifications now.
    --delete drops them.
    """
    client = server.client()
    if enable is not None:
        client.enable_push_config(run, enable)
    if delete is not None:
        client.delete_push_config(run, delete)
    configs = client.push_configs(run)
    if server.json:
        print_json(configs.answer())
        return Exit.OK
    rows = [
        [
            config["id"],
            config["host"],
            config["version"],
            "enabled" if config["enabled"] else "disabled",
            str(config["waiting"]),
            str(config["failures"]),
            config["error"] or "",
        ]
        for config in configs.items
    ]
    print_table(_COLUMNS, rows)
    if not rows:
        note("The task has no push notification configs.")
    return Exit.OK
