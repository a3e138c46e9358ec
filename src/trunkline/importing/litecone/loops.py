"""litecone's loops as `for_each`."""

from __future__ import annotations

from trunkline.importing.litecone.references import collects_item_results
from trunkline.importing.litecone.source_model import LiteconeLoopStep
from trunkline.importing.report import ImportReport
from trunkline.jsontypes import JsonObject

MAX_AT_ONCE = 1_000
# What a macro of CEL can go through.
MAX_MAPPED = 1_000


def for_each(step: LiteconeLoopStep, items: str, report: ImportReport) -> JsonObject:
    path = ("steps", step.id, "loop_config")
    each: JsonObject = {"items": f"${{ {items} }}", "mode": step.mode}
    if step.limit is not None and step.mode == "parallel":
        each["limit"] = min(step.limit, MAX_AT_ONCE)
        if step.limit > MAX_AT_ONCE:
            report.note((*path, "max_parallelism"), f"at most {MAX_AT_ONCE:,} items are processed at once")
    elif step.limit is not None:
        report.note((*path, "max_parallelism"), "it is left out, because the loop is sequential")
    if collects_item_results(step):
        each["on_error"] = "collect"
    elif step.on_error != "stop":
        each["on_error"] = step.on_error
    if step.on_error != "stop":
        report.note(
            (*path, "on_error"),
            "the run continues when items fail; in litecone, the run fails after all items have finished",
        )
    if step.most is None or step.most > MAX_MAPPED:
        report.note(
            (*path, "collection"),
            f"'iterations' of the loop can be read for lists of up to {MAX_MAPPED:,} items",
        )
    return each


def item_condition(step: LiteconeLoopStep, report: ImportReport) -> str | None:
    """The condition for an item to be among the first; None: all are."""
    if step.most is None:
        return None
    report.note(
        ("steps", step.id, "loop_config", "max_iterations"),
        f"items beyond the first {step.most:,} are skipped by `when`",
    )
    return f"index < {step.most}"


def names_of_loop(step: LiteconeLoopStep, items: str) -> dict[str, str]:
    """What `${loop.…}` stands for inside."""
    total = f"size({items})"
    if step.most is not None:
        total = f"({total} < {step.most} ? {total} : {step.most})"
    return {
        "item": "item",
        "index": "index",
        "total": total,
        "is_first": "(index == 0)",
        "is_last": f"(index + 1 == {total})",
    }
