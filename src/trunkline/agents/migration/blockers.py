"""What blocks the cutover of an agent. Deterministic, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from trunkline.agents.migration.comparison import ComparisonVerdict
from trunkline.agents.migration.model import MigrationState
from trunkline.agents.model import AUTO, Agent

BlockerCode = Literal[
    "no_target",
    "protocol_unknown",
    "check_missing",
    "check_failed",
    "too_few_comparisons",
    "disagreement",
    "not_attested",
    "not_repeatable",
]

# What `force` cannot overrule: there is no target to send runs to.
NOT_FORCEABLE: frozenset[BlockerCode] = frozenset({"no_target", "protocol_unknown"})
# For the other verdicts the source's answer is not known.
_COUNTED: frozenset[ComparisonVerdict] = frozenset({"agree", "differ", "new_failed"})


class CutoverBlocker(msgspec.Struct, frozen=True, kw_only=True):
    """Why not, and what to do about it."""

    code: BlockerCode
    message: str
    fix: str
    # The command in `fix`, if it has one.
    fix_command: str | None = None
    # What it stands in the way of.
    blocks: Literal["shadow", "cutover"] = "cutover"


class TargetCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The last check of the target, if it is not older than the target."""

    passed: bool
    # What it has found, in a few words.
    summary: str


def protocol_in_use(agent: Agent) -> str | None:
    """None: it has not been detected yet."""
    if agent.protocol != AUTO:
        return agent.protocol
    return None if agent.dialect is None else agent.dialect.protocol


def blockers_of(
    agent: Agent, state: MigrationState | None, checked: TargetCheck | None, counts: Mapping[str, int]
) -> Iterator[CutoverBlocker]:
    """`counts` are the comparisons of the agent's shadow, by their verdict."""
    name = agent.name
    if state is None or state.target is None or state.stage == "finished":
        if protocol_in_use(agent) is None:
            yield _fixed_by(
                "protocol_unknown",
                "Nobody has looked yet what it speaks.",
                f"trunkline agents refresh {name}",
            )
        yield _fixed_by(
            "no_target",
            "Nobody has said where it is to move to.",
            f"trunkline agents migrate ready {name} --to jsonrpc-2.0 --note TEXT",
        )
        return
    yield from _of_check(name, checked)
    yield from _of_shadow(name, state, counts)
    if state.ready is None:
        yield _fixed_by(
            "not_attested",
            "Nobody has attested what no program can check: deployed, documented, team told.",
            f"trunkline agents migrate ready {name} --note TEXT",
        )


def _fixed_by(code: BlockerCode, message: str, command: str, *, first: str = "") -> CutoverBlocker:
    """`first`: what has to be done before the command."""
    return CutoverBlocker(code=code, message=message, fix=first + command, fix_command=command)


def _of_check(name: str, checked: TargetCheck | None) -> Iterator[CutoverBlocker]:
    command = f"trunkline agents migrate check {name}"
    if checked is None:
        yield _fixed_by("check_missing", "The new side has not been checked.", command)
    elif not checked.passed:
        yield _fixed_by(
            "check_failed",
            f"The check of the new side fails: {checked.summary}.",
            command,
            first="Correct the agent, then: ",
        )


def _of_shadow(name: str, state: MigrationState, counts: Mapping[str, int]) -> Iterator[CutoverBlocker]:
    if not state.shadow_since:
        return
    limits = state.limits
    compared = sum(number for verdict, number in counts.items() if verdict in _COUNTED)
    if state.stage == "shadow" and compared < limits.comparisons:
        yield CutoverBlocker(
            code="too_few_comparisons",
            message=f"{compared} answers of the two sides were compared, of {limits.comparisons} at least.",
            fix="Wait for more runs, shadow more of them (--percent), or ask for fewer (--comparisons).",
        )
    disagreeing = compared - counts.get("agree", 0)
    if compared and disagreeing > limits.disagreement * compared:
        yield _fixed_by(
            "disagreement",
            f"The two sides disagree in {disagreeing} of {compared} answers; {limits.disagreement:.1%} of them may.",
            f"trunkline agents migrate status {name}",
            first="See how: ",
        )
