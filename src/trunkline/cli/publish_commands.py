"""
`trunkline agents publish|unpublish` and `trunkline workflows publish|unpublish`.

Publishing an agent changes its record. Publishing a workflow saves a new version of its definition, because `publish`
is a part of it. The rest of the text stays as it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.inputs import read_bytes
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, AgentArgument, Server
from trunkline.cli.rendering.output import note, print_fields, print_json
from trunkline.cli.rest.calls import segment
from trunkline.cli.rest.client import Client

if TYPE_CHECKING:
    from trunkline.jsontypes import Json, JsonObject
    from trunkline.workflow.document import parsing as workflow_parse
else:
    workflow_parse = lazy_module("trunkline.workflow.document.parsing")

WorkflowArgument = Annotated[str, Parameter(name="WORKFLOW", help="Name of the workflow.")]
OptionsFile = Annotated[
    str | None,
    Parameter(
        name="--options",
        metavar="FILE",
        help="YAML or JSON file with the options of publish, such as name and skills. - reads stdin.",
    ),
]


def publish_agent(agent: AgentArgument, /, *, options: OptionsFile = None, server: Server = HERE) -> int:
    """
    Publish an agent over A2A.

    Any A2A client can then call it through Trunkline. Without --options, the options of an agent that is already
    published stay as they are.
    """
    client = server.client()
    current, etag = client.agent(agent)
    wanted = _options(options)
    if wanted is not None or not current["publish"]:
        # A merge keeps what an object has beyond the patch.
        earlier = current["publish"] if isinstance(current["publish"], dict) else {}
        patch: Json = wanted if not isinstance(wanted, dict) else {**dict.fromkeys(earlier), **wanted}
        current, _ = client.patch_agent(agent, {"publish": True if patch is None else patch}, etag)
    _print_published(client, "agents", current["name"], {"publish": current["publish"]}, server)
    return Exit.OK


def unpublish_agent(agent: AgentArgument, /, *, server: Server = HERE) -> int:
    """
    Stop publishing an agent.

    Its tasks continue, but callers can no longer read them.
    """
    changed, _ = server.client().patch_agent(agent, {"publish": None}, None)
    _print_unpublished("agents", changed["name"], {}, server)
    return Exit.OK


def publish_workflow(
    workflow: WorkflowArgument, /, *, options: OptionsFile = None, server: Server = HERE
) -> int:
    """
    Publish a workflow over A2A.

    Saves the definition as a new version with publish. Without --options, the options of a workflow that is already
    published stay as they are.
    """
    client = server.client()
    current = client.workflow(workflow)
    wanted = _options(options)
    version = current["version"]
    if wanted is not None or not current["definition"].get("publish"):
        saved = client.publish_workflow(workflow, True if wanted is None else wanted)
        version = saved["version"]
    _print_published(client, "workflows", current["name"], {"version": version}, server)
    return Exit.OK


def unpublish_workflow(workflow: WorkflowArgument, /, *, server: Server = HERE) -> int:
    """
    Stop publishing a workflow.

    Saves the definition as a new version without publish. Its tasks continue, but callers can no longer read them.
    """
    client = server.client()
    current = client.workflow(workflow)
    version = current["version"]
    if current["definition"].get("publish"):
        version = client.publish_workflow(workflow, None)["version"]
    _print_unpublished("workflows", current["name"], {"version": version}, server)
    return Exit.OK


def _options(file: str | None) -> JsonObject | None:
    if file is None:
        return None
    with explained(file):
        document = workflow_parse.read_document(read_bytes(file), file)
    if document.problems or not isinstance(document.value, dict):
        reason = document.problems[0].message if document.problems else "it is not a mapping"
        raise CliError(
            f"Cannot read {file}: {reason}", fix="Write it like: name: Tide service", exit_code=Exit.INVALID
        )
    return document.value


def _print_published(client: Client, kind: str, name: str, extra: JsonObject, server: Server) -> None:
    card_path = f"/a2a/{kind}/{segment(name)}/.well-known/agent-card.json"
    card = cast("JsonObject", client.get(card_path))
    interfaces = cast("list[JsonObject]", card["supportedInterfaces"])
    url = str(interfaces[0]["url"])
    shown: JsonObject = {"name": name, **extra, "url": url, "card": f"{url}/.well-known/agent-card.json"}
    if server.json:
        print_json(shown)
    else:
        print_fields(list(shown.items()))


def _print_unpublished(kind: str, name: str, extra: JsonObject, server: Server) -> None:
    if server.json:
        print_json({"name": name, **extra, "publish": None})
    else:
        note(f"{name} is no longer published at /a2a/{kind}/{segment(name)}")
