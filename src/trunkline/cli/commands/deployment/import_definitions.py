"""`trunkline import --from SYSTEM`: definitions of another system, converted, and written or saved."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import msgspec
import yaml

from trunkline import wiring
from trunkline.cli.agent_secrets import resolve_references
from trunkline.cli.commands.agents.apply import apply_agent
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import ApiError, CliError, explained
from trunkline.cli.inputs import read_bytes
from trunkline.cli.options import Server
from trunkline.cli.rendering.output import note, print_json, print_text
from trunkline.errors import Finding, Invalid
from trunkline.importing import ImportedDefinitions, ImportedWorkflow, ImportRemark
from trunkline.importing.identifiers import file_name
from trunkline.importing.litecone import import_files
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.agents.specs import check_spec, parse_spec
from trunkline.workflow.document.parsing import read_document

# A URL of PostgreSQL, also one that names a driver; it may hold a password, and is never shown.
_DATABASE = re.compile(r"^postgres(?:ql)?(?:\+[a-z0-9]+)?://", re.IGNORECASE)
_WIDTH = 110
_STAND_IN = "not-looked-at"
AGENTS_FILE = "agents.yaml"


def import_definitions(files: Sequence[str], *, out: Path | None, server: Server | None, json: bool) -> int:
    sources = [source for file in files for source in _sources(file)]
    imported = import_files(sources, findings_of_agent)
    texts = _texts(imported)
    if server is not None:
        done = _save(imported, server)
    elif out is not None:
        done = _write(texts, out)
    else:
        done = {}
        if not json:
            _print(texts)
    if json:
        print_json(_answer(imported, done))
    else:
        _print_remarks(imported, done)
    return Exit.INVALID if imported.lost else Exit.OK


def findings_of_agent(agent: JsonObject) -> Sequence[Finding]:
    """What keeps the agent from being registered, as the server would say it."""
    config = agent.get("auth_config")
    document: JsonObject = {**agent}
    if isinstance(config, dict):
        # Environment variables are not read, because the agents may be applied elsewhere.
        document["auth_config"] = {
            name: _STAND_IN if isinstance(value, dict) else value for name, value in config.items()
        }
    try:
        check_spec(parse_spec(document))
    except Invalid as invalid:
        return invalid.findings
    return ()


def _sources(file: str) -> list[tuple[str, Json]]:
    """What a file holds, or each table of a database, with the name that messages give it."""
    if _DATABASE.match(file) is None:
        with explained(file):
            return [(file, _document(read_bytes(file), file))]
    with explained():
        rows = asyncio.run(wiring.read_litecone_database(file))
    tables = {"agents": rows.agents, "workflow_definitions": rows.workflows}
    return [
        (f"{rows.place} {table}", [_document(text, f"{rows.place} {table}") for text in texts])
        for table, texts in tables.items()
        if texts
    ]


def _document(content: str | bytes, file: str) -> Json:
    with explained(file):
        document = read_document(content, file)
    if document.problems:
        problem = document.problems[0]
        raise CliError(
            f"Cannot read {file}: {problem.message} ({problem.path})",
            fix="Correct the file.",
            exit_code=Exit.INVALID,
        )
    return document.value


def _texts(imported: ImportedDefinitions) -> dict[str, str]:
    """The files' contents, by their names."""
    texts: dict[str, str] = {}
    if imported.agents:
        texts[AGENTS_FILE] = _yaml({"agents": list(imported.agents)})
    for workflow in imported.workflows:
        texts[_free_name(workflow, texts)] = _comments(workflow, imported.remarks) + _yaml(
            workflow.definition
        )
    return texts


def _free_name(workflow: ImportedWorkflow, taken: dict[str, str]) -> str:
    base = file_name(workflow.name)
    # Some file systems ignore case.
    lower = {name.lower() for name in taken}
    name, number = f"workflows/{base}.yaml", 1
    while name.lower() in lower:
        number += 1
        name = f"workflows/{base}-{number}.yaml"
    return name


def _comments(workflow: ImportedWorkflow, remarks: Iterable[ImportRemark]) -> str:
    """What is missing stands in the file itself, where it is corrected."""
    missing = [
        r for r in remarks if r.kind == "lost" and r.about == workflow.name and r.file == workflow.file
    ]
    lines = (f"# Not converted: {_sentence(remark)}" for remark in missing)
    return "".join(f"{' '.join(line.split())}\n" for line in lines)


def _yaml(value: JsonObject) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH)


def _print(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        print_text(f"---\n# {name}\n{text.rstrip()}")


def _write(texts: dict[str, str], out: Path) -> dict[str, str]:
    targets = {name: out / name for name in texts}
    try:
        for name, target in targets.items():
            if target.exists() and target.read_text(encoding="utf-8") != texts[name]:
                raise CliError(
                    f"{target} already exists with other content, so nothing was written",
                    fix="Choose another folder, or remove the file.",
                    exit_code=Exit.CONFLICT,
                )
        for name, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(texts[name], encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(
            f"Cannot write to {out}: {error}", fix="Check the folder.", exit_code=Exit.USAGE
        ) from error
    return {str(target): "written" for target in targets.values()}


def _save(imported: ImportedDefinitions, server: Server) -> dict[str, str]:
    client = server.client()
    # Each secret has to be there before anything is saved.
    for agent in imported.agents:
        resolve_references(agent.get("auth_config"))
    done: dict[str, str] = {}
    for agent in imported.agents:
        done[f"agent {agent['name']}"] = apply_agent(client, agent)
    for workflow in imported.workflows:
        key = f"workflow {workflow.name}"
        if not workflow.complete:
            done[key] = "not saved"
            continue
        try:
            _, created = client.save_workflow(_yaml(workflow.definition).encode())
        except ApiError as error:
            error.source = workflow.file
            raise
        done[key] = "created" if created else "unchanged"
    return done


def _answer(imported: ImportedDefinitions, done: dict[str, str]) -> JsonObject:
    return {
        "workflows": [cast("JsonObject", msgspec.to_builtins(workflow)) for workflow in imported.workflows],
        "agents": list(imported.agents),
        "remarks": [cast("JsonObject", msgspec.to_builtins(remark)) for remark in imported.remarks],
        "remarks_left_out": imported.dropped,
        "not_carried_over": imported.lost,
        "done": dict(done),
    }


def _print_remarks(imported: ImportedDefinitions, done: dict[str, str]) -> None:
    for what, change in done.items():
        note(f"{what}: {change}")
    for remark in imported.remarks:
        mark = "note" if remark.kind == "note" else "NOT CONVERTED"
        note(f"{mark}: {_sentence(remark)}")
    if imported.dropped:
        note(f"… and {imported.dropped:,} more remarks.")
    found = f"{_count(len(imported.workflows), 'workflow')} and {_count(len(imported.agents), 'agent')}"
    if imported.lost:
        note(f"Imported {found}; {_count(imported.lost, 'thing')} could not be converted.")
    else:
        note(f"Imported {found}; everything was converted.")


def _sentence(remark: ImportRemark) -> str:
    where = ": ".join(part for part in (remark.file, remark.about, remark.path) if part)
    return f"{where}: {remark.message}." + (f" {remark.fix}" if remark.fix else "")


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
