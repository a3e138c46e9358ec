"""
`trunkline agents apply FILE`: registers and updates the agents in a file.

    agents:
      - name: "ModernAgent"
        url: "http://modern:8001"
        protocol: "jsonrpc-2.0"
        protocol_config:
          method: "message/send"
          version: "2.0"

Applying a file twice changes nothing the second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, cast

from cyclopts import Parameter

from trunkline.cli.agent_secrets import resolve_references
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError, explained
from trunkline.cli.inputs import read_bytes
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import print_json, print_table, status_cell
from trunkline.cli.rest.client import Client

if TYPE_CHECKING:
    from trunkline.jsontypes import Json, JsonObject
    from trunkline.workflow.document import parsing as workflow_parse
else:
    workflow_parse = lazy_module("trunkline.workflow.document.parsing")

Change = Literal["created", "updated", "unchanged"]


def apply(
    file: Annotated[str, Parameter(name="FILE", help="YAML file with a list named agents. - reads stdin.")],
    /,
    *,
    server: Server = HERE,
) -> int:
    """
    Register or update the agents in a file.

    Fields and agents that are not in the file stay as they are. In auth_config, write {env: VARIABLE} or {file: PATH}
    instead of a secret.
    """
    client = server.client()
    changes = [
        {"name": str(spec["name"]), "change": apply_agent(client, spec)} for spec in read_agents_file(file)
    ]
    if server.json:
        print_json({"items": changes, "next_cursor": None})
    else:
        print_table(("AGENT", "CHANGE"), [[row["name"], status_cell(row["change"])] for row in changes])
    return Exit.OK


def read_agents_file(file: str) -> list[JsonObject]:
    """The agents of the file, each with a name."""
    # The reader of workflows: in YAML 1.1, which the library's loader reads, `on` is true.
    with explained(file):
        document = workflow_parse.read_document(read_bytes(file), file)
    if document.problems:
        raise _invalid(file, document.problems[0].message)
    return read_agents(file, document.value)


def read_agents(file: str, content: Json) -> list[JsonObject]:
    """The agents of a file's content. The server validates the rest."""
    listed = content.get("agents") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise _invalid(file, "it has no list named agents")
    return [_checked(file, number, agent) for number, agent in enumerate(listed, start=1)]


def apply_agent(client: Client, spec: JsonObject) -> Change:
    if "auth_config" in spec:
        spec = {**spec, "auth_config": resolve_references(spec["auth_config"])}
    name = str(spec["name"])
    try:
        current, etag = client.agent(name)
    except ApiError as error:
        if error.status != 404:
            raise
        client.create_agent(spec)
        return "created"
    patch = difference(cast("JsonObject", current), spec)
    if not patch:
        return "unchanged"
    _, new_etag = client.patch_agent(name, patch, etag)
    # The server may find that what is written differently means the same.
    return "unchanged" if etag is not None and new_etag == etag else "updated"


def difference(current: JsonObject, wanted: JsonObject) -> JsonObject:
    """
    The JSON merge patch that gives every field of `wanted` its value.

    A merge keeps what an object has beyond the patch, so what `wanted` no longer has is set to null.
    """
    patch: JsonObject = {}
    for name, value in wanted.items():
        present = current.get(name)
        if present == value and name in current:
            continue
        if isinstance(value, dict) and isinstance(present, dict):
            patch[name] = {**dict.fromkeys(present.keys() - value.keys()), **difference(present, value)}
        else:
            patch[name] = value
    return patch


def _checked(file: str, number: int, agent: Json) -> JsonObject:
    if not isinstance(agent, dict):
        raise _invalid(file, f"agent {number} is not a mapping")
    if not isinstance(agent.get("name"), str):
        raise _invalid(file, f"agent {number} has no name")
    return agent


def _invalid(file: str, reason: str) -> CliError:
    return CliError(
        f"Cannot apply {file}: {reason}",
        fix="Write it like: agents: [{name: Research, url: http://127.0.0.1:8080}]",
        exit_code=Exit.INVALID,
    )
