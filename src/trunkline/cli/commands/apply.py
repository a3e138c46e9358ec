"""
`trunkline apply FILE|FOLDER`: agents, workflows, triggers and subscriptions from files.

What a file holds is seen from its keys: `kind: trigger` or `subscription`, a list named `agents`, or else a workflow.
Agents are applied first, then workflows and triggers, since each refers to the ones before.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.commands.agents.apply import apply_agent, read_agents
from trunkline.cli.definition_files import read_document, save_subscription, save_text, save_trigger
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import STDIN
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import print_json, print_table, status_cell

if TYPE_CHECKING:
    from trunkline.jsontypes import JsonObject

Kind = Literal["agent", "workflow", "trigger", "subscription"]
_KINDS: tuple[Kind, ...] = ("agent", "workflow", "trigger", "subscription")
_SUFFIXES = (".yaml", ".yml", ".json")
# A folder that was named by mistake is not read to its end.
_MAX_FILES = 10_000


def apply(
    places: Annotated[
        tuple[str, ...],
        Parameter(
            name="FILE|FOLDER",
            help="YAML or JSON files, or folders that contain them. - reads stdin.",
            negative="",
        ),
    ],
    /,
    *,
    server: Server = HERE,
) -> int:
    """
    Apply agents, workflows, triggers and subscriptions from files and folders.

    A file with kind: trigger or kind: subscription is one of these, a file with a list named agents has agents, and any
    other file is a workflow. Agents are applied first, then workflows and triggers. Applying the same
    files twice changes nothing the second time.
    """
    client = server.client()
    found: dict[Kind, list[tuple[str, bytes, JsonObject]]] = {kind: [] for kind in _KINDS}
    for path in _files(places):
        text, document = read_document(path)
        found[_kind(document)].append((path, text, document))
    changes: list[tuple[Kind, str, str]] = []
    for path, _, document in found["agent"]:
        specs = read_agents(path, document)
        changes.extend(("agent", str(spec["name"]), apply_agent(client, spec)) for spec in specs)
    for path, text, _ in found["workflow"]:
        saved, created = save_text(client, path, text)
        changes.append(("workflow", saved["name"], "created" if created else "unchanged"))
    for path, text, document in found["trigger"]:
        applied = save_trigger(client, path, text, document)
        changes.append(("trigger", applied.trigger["name"], applied.change))
    for path, text, document in found["subscription"]:
        subscribed = save_subscription(client, path, text, document)
        changes.append(("subscription", subscribed.subscription["name"], subscribed.change))
    if server.json:
        items = [{"kind": kind, "name": name, "change": change} for kind, name, change in changes]
        print_json({"items": items, "next_cursor": None})
    else:
        rows = [[kind, name, status_cell(change)] for kind, name, change in changes]
        print_table(("KIND", "NAME", "CHANGE"), rows)
    return Exit.OK


def _kind(document: JsonObject) -> Kind:
    if document.get("kind") == "trigger":
        return "trigger"
    if document.get("kind") == "subscription":
        return "subscription"
    return "agent" if isinstance(document.get("agents"), list) and "steps" not in document else "workflow"


def _files(places: tuple[str, ...]) -> list[str]:
    files: list[str] = []
    for place in places:
        if place != STDIN and os.path.isdir(place):
            files += _files_in(place)
        else:
            files.append(place)
    return files


def _files_in(folder: str) -> list[str]:
    found: list[str] = []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(path, name) for name in sorted(names) if name.endswith(_SUFFIXES)]
        if len(found) > _MAX_FILES:
            raise CliError(
                f"{folder} has more than {_MAX_FILES:,} files",
                fix="Name a smaller folder.",
                exit_code=Exit.USAGE,
            )
    if not found:
        raise CliError(
            f"{folder} has no files to apply",
            fix=f"Add files that end in {', '.join(_SUFFIXES)}.",
            exit_code=Exit.INVALID,
        )
    return found
