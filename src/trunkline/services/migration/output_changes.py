"""
Which expressions of workflows mean something else when an agent's output has another form.

    plain     {"text", "data"}                                      what Simple A2A and plain calls give
    message   {"text", "data", "artifacts", "response", "history", …}    what messages and tasks give
    data      the agent's own object, where `output_mode` is `data`

`text` and `data` read alike in the first two; nothing does between them and the third. Only the answers of shadow calls
show what an agent says otherwise after its migration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from trunkline.agents.migration.comparison import AnswerComparison, escaped
from trunkline.jsontypes import JsonObject
from trunkline.workflow import OutputRead

OutputForm: TypeAlias = Literal["plain", "message", "data"]

_PLAIN_PROTOCOLS = frozenset({"simple-a2a", "jsonrpc-call"})
_ALIKE = frozenset({"text", "data"})


class ChangedRead(msgspec.Struct, frozen=True, kw_only=True):
    """An expression that would read something else."""

    workflow: str
    version: int
    # Where it stands, as a dotted path.
    place: str
    expression: str
    # The step whose output it reads.
    step: str
    why: str


def form_of(protocol: str, config: JsonObject | None) -> OutputForm:
    if (config or {}).get("output_mode") == "data":
        return "data"
    return "plain" if protocol in _PLAIN_PROTOCOLS else "message"


def changed_reads(
    workflow: str, version: int, reads: Mapping[str, list[OutputRead]], before: OutputForm, after: OutputForm
) -> Iterator[ChangedRead]:
    """`reads` by step, of the steps whose agent migrates."""
    for step, found in reads.items():
        for read in found:
            why = _why(read.keys, before, after)
            if why is not None:
                yield ChangedRead(
                    workflow=workflow,
                    version=version,
                    place=read.place,
                    expression=read.expression,
                    step=step,
                    why=why,
                )


def observed_changes(
    workflow: str, version: int, reads: Mapping[str, list[OutputRead]], compared: Sequence[AnswerComparison]
) -> Iterator[ChangedRead]:
    """The reads of values that shadow answers have shown to be others, or to be missing."""
    for step, found in reads.items():
        for read in found:
            why = _observed(read.keys, compared)
            if why is not None:
                yield ChangedRead(
                    workflow=workflow,
                    version=version,
                    place=read.place,
                    expression=read.expression,
                    step=step,
                    why=why,
                )


def _observed(keys: tuple[str, ...], compared: Sequence[AnswerComparison]) -> str | None:
    path = "".join(f"/{escaped(key)}" for key in keys)
    lost = sum(any(_overlap(path, each) for each in found.only_in_old) for found in compared)
    if lost and keys:
        return f"The target's answer did not have {keys[0]} in {lost} of {len(compared)} comparisons."
    other = sum(any(_overlap(path, each.path) for each in found.differences) for found in compared)
    return f"The target answered another value in {other} of {len(compared)} comparisons." if other else None


def _overlap(read: str, changed: str) -> bool:
    """Whether one place is within the other."""
    return f"{read}/".startswith(f"{changed}/") or f"{changed}/".startswith(f"{read}/")


def _why(keys: tuple[str, ...], before: OutputForm, after: OutputForm) -> str | None:
    if before == after:
        return None
    if before == "data":
        return "The object moves to output.data. Set output_mode: data for the target to keep it where it is."
    if after == "data":
        return "The output becomes the agent's object itself, without text and data around it."
    if not keys:
        return "The fields of the output change."
    if keys[0] in _ALIKE or after == "message":
        return None
    return f"The output no longer has {keys[0]}."
