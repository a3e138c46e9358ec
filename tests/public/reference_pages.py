"""
The generated pages of the reference: `make docs`.

Each page is generated from the program, or from a checked-in document in this folder that a test compares with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from inspect import cleandoc
from pathlib import Path
from textwrap import fill
from typing import cast

from cyclopts import App, Argument
from pydantic_core import PydanticUndefined
from tests.public.schema_tables import form_of, properties_of, table_of, variants_of

from trunkline.cli.app import build_app, load_commands
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.messages import ERROR_CODES, ErrorCodeInfo
from trunkline.settings import Settings
from trunkline.workflow import format_duration

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
_EVERYWHERE = {"X-Correlation-ID"}
_METHODS = ("get", "post", "put", "patch", "delete")


def _checked_in(name: str) -> JsonObject:
    return cast("JsonObject", decode((ROOT / "tests/public" / name).read_bytes()))


def _inside(document: JsonObject, *path: str) -> dict[str, JsonObject]:
    found: Json = document
    for name in path:
        found = cast("JsonObject", found)[name]
    return cast("dict[str, JsonObject]", found)


def _joined(*parts: str | list[str]) -> str:
    """Paragraphs with an empty line between them."""
    texts = ["\n".join(part) if isinstance(part, list) else part for part in parts]
    return "\n\n".join(text for text in texts if text) + "\n"


def _paragraph(*lines: str) -> str:
    return fill(" ".join(lines), 118, break_long_words=False, break_on_hyphens=False)


# --- error codes


def error_codes_page() -> str:
    lines = [
        "# Error codes",
        "",
        "Written by `make docs` from `src/trunkline/messages/error_codes.py`.",
        "",
        "`error.code` of a step or a run is one of these codes. A retry policy can list them in",
        "[`on`](../guides/workflows.md#retry). *Reached the agent* has these values:",
        "",
        "- **no**: the request did not reach the agent.",
        "- **maybe**: the request was sent, and no answer came. The next attempt repeats the message and its id.",
        "- **yes**: the agent answered. The next attempt is a new message with a new id.",
        "",
        "The `fix` is the default text. An error may have a more specific one.",
        "",
        "| code | reached the agent | fix |",
        "|---|---|---|",
        *(f"| `{name}` | {_reached(code)} | {code.fix} |" for name, code in ERROR_CODES.items()),
    ]
    return "\n".join(lines) + "\n"


def _reached(code: ErrorCodeInfo) -> str:
    return "yes" if code.answered else "maybe" if code.sent else "no"


# --- settings


def settings_page() -> str:
    rows = [
        f"| `{name}` | {_default(field.default)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return _joined(
        "# Settings",
        "Written by `make docs` from `src/trunkline/settings.py`.",
        _paragraph(
            "A setting is a flag of `up` and `serve` (`--stop-timeout 10s`), an environment variable",
            "(`TRUNKLINE_STOP_TIMEOUT=10s`), a line in `.env`, or a key in `trunkline.toml`",
            '(`stop_timeout = "10s"`). The files are read from the current folder. `TRUNKLINE_CONFIG`',
            "names another TOML file instead of `trunkline.toml`. If a setting is given more than once, the first of",
            "these sources wins. `secret_key` and `kafka_sasl_password` have no flag.",
            "`trunkline config show` shows the values that `up` would use, and where each value comes from.",
        ),
        _paragraph(
            "Write a duration as a number and a unit: `100ms`, `25s`, `5m`, `1h`, `2d`. Separate the items of a list",
            "in a variable or flag by commas. Settings that accept only certain words ignore case:",
            "`TRUNKLINE_LOG_LEVEL=WARNING` means `warning`.",
        ),
        ["| setting | default | meaning |", "|---|---|---|", *rows],
    )


def _default(value: object) -> str:
    if value is PydanticUndefined or value in {None, ()}:
        return "–"
    return f"`{format_duration(value) if isinstance(value, timedelta) else value}`"


# --- the workflow language


def workflow_language_page() -> str:
    schema = _checked_in("workflow-schema.json")
    definitions = _inside(schema, "$defs")
    parts: list[str | list[str]] = []
    for name, definition in definitions.items():
        tables = [table_of(variant, _anchor) for variant in _with_properties(definition)]
        parts += [f"## {name}", str(definition.get("description", "")), *tables]
        if not tables:
            parts.append(_form_alone(definition))
    return _joined(
        "# Workflow language",
        _paragraph(
            "Written by `make docs` from [the JSON Schema of the language](../../tests/public/workflow-schema.json).",
            "Editors and other programs get it from `trunkline workflows schema` or `GET /api/v1/workflow-schema`.",
            "[The guide](../guides/workflows.md) explains every key with examples.",
        ),
        str(schema["description"]),
        table_of(schema, _anchor),
        *parts,
    )


def _with_properties(schema: JsonObject) -> list[JsonObject]:
    return [variant for variant in [schema, *variants_of(schema)] if properties_of(variant)]


def _form_alone(schema: JsonObject) -> str:
    pattern = schema.get("pattern")
    return f"Type: {form_of(schema, _anchor)}{f', matching `{pattern}`' if pattern else ''}."


def _anchor(name: str) -> str:
    return f"[{name}](#{re.sub(r'[^a-z0-9 _-]', '', name.lower()).replace(' ', '-')})"


# --- REST


def operations_page() -> str:
    document = _checked_in("openapi.json")
    parts: list[str | list[str]] = []
    tags = cast("list[JsonObject]", document["tags"])
    for tag in tags:
        parts += [f"## {str(tag['name']).capitalize()}", str(tag.get("description", ""))]
        for path, methods in _inside(document, "paths").items():
            for method in _METHODS:
                operation = cast("JsonObject | None", methods.get(method))
                if operation and tag["name"] in cast("list[str]", operation["tags"]):
                    parts += _operation(f"{method.upper()} {path}", operation)
    schemas = _inside(document, "components", "schemas")
    parts.append("## Schemas")
    for name, schema in schemas.items():
        parts += [f"### {name}", str(schema.get("description", ""))]
        tables = [table_of(variant, _anchor) for variant in _with_properties(schema)]
        parts += tables or [_form_alone(schema)]
    return _joined(
        "# REST operations",
        _paragraph(
            "Written by `make docs` from the OpenAPI document, which the server provides at `/openapi.json`.",
            "[The REST interface](rest.md) explains what applies to all operations: API keys, problems, pages and",
            "versions. Every operation accepts an `X-Correlation-ID`, and can answer with a 5xx status.",
        ),
        *parts,
    )


def _operation(title: str, operation: JsonObject) -> Iterator[str | list[str]]:
    yield f"### {title}"
    role = operation.get("x-trunkline-role")
    yield str(operation.get("description", "")) + (f"\n\nRole: {role}." if role else "")
    parameters = [
        f"| `{parameter['name']}` | {parameter['in']}, {_form(parameter)} | {parameter.get('description', '')} |"
        for parameter in cast("list[JsonObject]", operation.get("parameters", []))
        if parameter["name"] not in _EVERYWHERE
    ]
    if parameters:
        yield ["| parameter | | |", "|---|---|---|", *parameters]
    if body := operation.get("requestBody"):
        yield f"Body: {_content(cast('JsonObject', body))}."
    answers = [
        f"| {status} | {_content(answer)} | {answer.get('description', '')} |"
        for status, answer in _inside(operation, "responses").items()
        if status != "5XX"
    ]
    yield ["| status | answer | |", "|---|---|---|", *answers]


def _form(parameter: JsonObject) -> str:
    form = form_of(cast("JsonObject", parameter["schema"]), _anchor)
    return f"{form}; required" if parameter.get("required") else form


def _content(message: JsonObject) -> str:
    kinds = cast("dict[str, JsonObject]", message.get("content", {}))
    forms: list[str] = []
    for name, kind in kinds.items():
        form = form_of(cast("JsonObject", kind.get("schema", {})), _anchor)
        forms.append(
            form if name in {"application/json", "application/problem+json"} else f"{form} (`{name}`)"
        )
    return " or ".join(forms) or "nothing"


# --- messages


def messages_page() -> str:
    document = _checked_in("asyncapi.json")
    schemas = _inside(document, "components", "schemas")
    channels = [_channel(channel) for channel in _inside(document, "channels").values()]
    parts: list[str | list[str]] = []
    for name, message in _inside(document, "components", "messages").items():
        headers = [
            f"`{header}`{_constant(schema)}"
            for header, schema in properties_of(cast("JsonObject", message.get("headers", {}))).items()
        ]
        parts += [
            f"## {name}",
            str(message["summary"]),
            f"Headers: {', '.join(headers)}." if headers else "",
            *_payload(schemas[name]),
        ]
    others = [name for name in schemas if name not in _inside(document, "components", "messages")]
    for name in others:
        parts += [f"## {name}", str(schemas[name].get("description", "")), *_payload(schemas[name])]
    return _joined(
        "# Messages",
        _paragraph(
            "Written by `make docs` from the AsyncAPI document, which the server provides at `/asyncapi.json` with the",
            "topic names of its settings. [Topics](topics.md) explains which topics other programs may read and",
            "write, and what the delivery guarantees.",
        ),
        ["| topic | | messages |", "|---|---|---|", *channels],
        *parts,
    )


def _channel(channel: JsonObject) -> str:
    messages = ", ".join(map(_anchor, _inside(channel, "messages")))
    return f"| `{channel['address']}` | {channel['description']} | {messages} |"


def _constant(schema: JsonObject) -> str:
    return f" (`{schema['const']}`)" if "const" in schema else ""


def _payload(schema: JsonObject) -> list[list[str]]:
    return [table_of(variant, _anchor) for variant in _with_properties(schema)]


# --- the command line


def commands_page() -> str:
    app = build_app()
    load_commands(app)
    parts: list[str | list[str]] = []
    for path, command in _commands(app, ()):
        # Its parameters are in the table.
        about = _prose(command.help).partition("\n\nParameters\n---")[0]
        parts += [f"## trunkline {' '.join(path)}", about, _parameters(command)]
    return _joined(
        "# Commands",
        _paragraph(
            "Written by `make docs` from the commands themselves. [The command line](cli.md) explains what applies to",
            "all commands, and their exit codes. Use `--url` or `TRUNKLINE_URL` to select another server, and `--json`",
            "to print JSON.",
        ),
        *parts,
    )


def _commands(app: App, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in app:
        if not name.startswith("-") and app[name].show:
            inner = [*_commands(app[name], (*path, name))]
            yield from inner or [((*path, name), app[name])]


def _prose(text: str) -> str:
    return re.sub(r"<([^>]*)>", r"&lt;\1&gt;", cleandoc(text))


def _cell(text: str) -> str:
    return " ".join(_prose(text).split()).replace("|", "\\|")


def _parameters(command: App) -> list[str]:
    rows = [
        f"| {_names(argument)} | {_needed(argument)} | {_cell(argument.parameter.help)} |"
        for argument in command.assemble_argument_collection(parse_docstring=True)
        if argument.show and argument.parameter.help and argument.name not in {"--url", "--json"}
    ]
    return ["| argument | default | |", "|---|---|---|", *rows] if rows else []


def _names(argument: Argument) -> str:
    return ", ".join(f"`{name}`" for name in argument.names)


def _needed(argument: Argument) -> str:
    if argument.required:
        return "required"
    default = argument.field_info.default
    if default in {None, False, (), ""} or default is argument.field_info.empty:
        return ""
    return f"`{format_duration(default) if isinstance(default, timedelta) else default}`"


PAGES: dict[str, Callable[[], str]] = {
    "error-codes.md": error_codes_page,
    "settings.md": settings_page,
    "workflow-language.md": workflow_language_page,
    "operations.md": operations_page,
    "messages.md": messages_page,
    "commands.md": commands_page,
}
