"""litecone's workflows as the tests write them, and what an import makes of them."""

from __future__ import annotations

from trunkline.importing import ImportedDefinitions, ImportRemark
from trunkline.importing.litecone import import_files
from trunkline.jsontypes import Json, JsonObject


def call(following: str | None = None, agent: str = "A", **mapping: Json) -> JsonObject:
    return {"type": "agent", "agent_name": agent, "next_step": following, "input_mapping": mapping}


def workflow(start: str, steps: dict[str, JsonObject], **more: Json) -> JsonObject:
    described: JsonObject = {name: {"id": name, **step} for name, step in steps.items()}
    return {"name": "w", "start_step": start, "steps": described, **more}


def imported(source: Json) -> ImportedDefinitions:
    return import_files([("w.json", source)])


def steps_of(source: Json) -> dict[str, JsonObject]:
    (found,) = imported(source).workflows
    steps = found.definition["steps"]
    assert isinstance(steps, dict)
    return {name: step for name, step in steps.items() if isinstance(step, dict)}


def remarks_of(source: Json, kind: str) -> list[ImportRemark]:
    return [remark for remark in imported(source).remarks if remark.kind == kind]


def only_loss(source: Json) -> ImportRemark:
    (loss,) = remarks_of(source, "lost")
    assert loss.fix
    return loss


def loop_of(**config: Json) -> JsonObject:
    whole: JsonObject = {"collection": "${workflow.input.items}", "loop_body": ["body"], **config}
    loop: JsonObject = {"type": "loop", "loop_config": whole, "next_step": "end"}
    mapping = {"i": "${loop.item.name}", "n": "${loop.index}", "t": "${loop.total}", "l": "${loop.is_last}"}
    return workflow(
        "l", {"l": loop, "body": call(None, "B", **mapping), "end": call(None, r="${l.output.iterations}")}
    )
