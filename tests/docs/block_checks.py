"""
Each language of a code block, read by what reads it for a user.

A reader raises, or returns what is wrong; a language that is not here is a mistake of the page.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Callable
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import jsonschema_rs
from tests.asyncapi_messages import at, validator
from tests.certificates import made, signing_key
from tests.docs.blocks import ROOT, Block
from tests.docs.shell import mistakes_in
from tests.docs.wire_blocks import mistakes_on_the_wire
from tests.interop.environments import NODE, go_tool

from trunkline.clock import Instant
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.messages import ERROR_CODES
from trunkline.services.agents.specs import check_spec, parse_spec
from trunkline.services.subscriptions.definition import load_subscription
from trunkline.settings import Settings
from trunkline.triggers import TriggerDocument, load_trigger
from trunkline.workflow import load_workflow, workflow_json_schema
from trunkline.workflow.document.parsing import read_document
from trunkline.zones.access.policy_file import read_policy

# Where the schemas are that a JSON block can be said to fit.
_DESCRIBED = {"rest": "openapi.json", "message": "asyncapi.json"}
_TODAY = Instant(1_767_225_600_000_000)
_LANGUAGE = jsonschema_rs.validator_for(workflow_json_schema())


def read_shell(block: Block) -> list[str]:
    return mistakes_in(block.text)


def read_console(block: Block) -> list[str]:
    lines = [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
    return mistakes_in("\n".join(lines)) if lines else ["there is no line that begins with $"]


def read_json(block: Block) -> list[str]:
    value = decode(block.text.encode())
    for word, document in _DESCRIBED.items():
        if word in block.words:
            whole = cast("JsonObject", decode((ROOT / "tests/public" / document).read_bytes()))
            validator(whole, at(whole, "components", "schemas", block.words[word])).validate(value)
    return mistakes_on_the_wire(block)


def read_yaml(block: Block) -> list[str]:
    content = read_document(block.text.encode(), str(block)).value
    if not isinstance(content, dict):
        return ["it is no mapping"]
    if content.get("kind") == "trigger":
        load_trigger(TriggerDocument(block.text, str(block)), _TODAY)
        return []
    if content.get("kind") == "subscription":
        load_subscription(block.text.encode())
        return []
    if "agents" in content:
        agents = content["agents"]
        return read_agents(cast("list[JsonObject]", agents)) if isinstance(agents, list) else ["no list"]
    text = _around(block.text) if "step" in block.words else block.text
    load_workflow(text, known_error_codes=ERROR_CODES)
    # An editor with the published schema has to agree.
    return [str(error) for error in _LANGUAGE.iter_errors(read_document(text.encode(), str(block)).value)]


def _around(step: str) -> str:
    """A workflow whose only step has these lines."""
    lines = step.splitlines()
    indent = "    "
    agent = [] if any(line.startswith("agent:") for line in lines) else [f"{indent}agent: Anybody"]
    return "\n".join(["name: around", "steps:", "  step:", *agent, *(indent + line for line in lines)])


def read_agents(agents: list[JsonObject]) -> list[str]:
    for agent in agents:
        spec = {key: _with_any_secrets(key, value) for key, value in agent.items()}
        check_spec(parse_spec(spec))
    return []


def _with_any_secrets(name: str, value: Json) -> Json:
    """What {env: …} and {file: …} stand for is the reader's own; here it is something that fits."""
    if not isinstance(value, dict):
        return value
    if set(value) in ({"env"}, {"file"}):
        return {"key": signing_key()[0], "authority": made("internal")[0]}.get(name, "anything")
    return {key: _with_any_secrets(key, inner) for key, inner in value.items()}


def read_toml(block: Block) -> list[str]:
    content = tomllib.loads(block.text)
    if "policy" in block.words:
        with TemporaryDirectory() as folder:
            for name in re.findall(r'file = "([\w.]+)"', block.text):
                (Path(folder) / name).write_text(signing_key()[1])
            read_policy(cast("Json", content), Path(folder))
        return []
    unknown = set(content) - set(Settings.model_fields)
    if unknown:
        return [f"these are no settings: {', '.join(sorted(unknown))}"]
    Settings.model_validate(content)
    return []


def read_ini(block: Block) -> list[str]:
    """A unit of systemd: its commands are a shell's."""
    unit = ConfigParser(interpolation=None)
    unit.read_string(block.text)
    return mistakes_in(unit["Service"]["ExecStart"])


def read_python(block: Block) -> list[str]:
    compile(block.text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return [
        f"{node.module} has no {name.name}"
        for node in ast.walk(ast.parse(block.text))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "trunkline"
        for name in node.names
        if not hasattr(import_module(node.module), name.name)
    ]


def read_javascript(block: Block) -> list[str]:
    kind = "module" if block.text.startswith("import ") else "commonjs"
    return _findings_of([str(NODE), f"--input-type={kind}", "--check", "-"], block.text)


def read_go(block: Block) -> list[str]:
    return _findings_of([str(go_tool("gofmt")), "-e", "-l"], block.text)


def _findings_of(command: list[str], text: str) -> list[str]:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return [done.stderr] if done.returncode else []


def read_included(block: Block) -> list[str]:
    """`{literalinclude} FILE`: the one copy of a file, which is tested where it is."""
    (name,) = block.words
    file = (ROOT / block.page).parent / name
    return [] if file.is_file() else [f"there is no file {name}"]


def read_nothing(_: Block) -> list[str]:
    return []


READERS: dict[str, Callable[[Block], list[str]]] = {
    "sh": read_shell,
    "bash": read_shell,
    "console": read_console,
    "json": read_json,
    "yaml": read_yaml,
    "toml": read_toml,
    "ini": read_ini,
    "python": read_python,
    "javascript": read_javascript,
    "go": read_go,
    "text": read_nothing,
    "{toctree}": read_nothing,
    "{literalinclude}": read_included,
}
