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

# `force` cannot override these: there is no target to send runs to.
NOT_FORCEABLE: frozenset[BlockerCode] = frozenset({"no_target", "protocol_unknown"})
# For the other verdicts the source's answer is not known.
_COUNTED: frozenset[ComparisonVerdict] = frozenset({"agree", "differ", "new_failed"})


class MigrationBlocker(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why a shadow or a cutover is not possible, and how to fix it."""

    code: BlockerCode
    message: str
    fix: str
    # The command in `fix`, if there is one.
    fix_command: str | None = None
    # The action that is blocked.
    blocks: Literal["shadow", "cutover"] = "cutover"


class TargetCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The last check of the target, if it is not older than the target."""

    passed: bool
    # A short summary of its findings.
    summary: str
    # Whether only a check that sends messages can tell.
    needs_messages: bool = False


def protocol_in_use(agent: Agent) -> str | None:
    """None: it has not been detected yet."""
    if agent.protocol != AUTO:
        return agent.protocol
    return None if agent.dialect is None else agent.dialect.protocol


def blockers_of(
    agent: Agent, state: MigrationState | None, checked: TargetCheck | None, counts: Mapping[str, int]
) -> Iterator[MigrationBlocker]:
    """`counts` are the comparisons of the agent's shadow, by their verdict."""
    name = agent.name
    if state is None or state.target is None or state.stage == "finished":
        if protocol_in_use(agent) is None:
            yield _fixed_by(
                "protocol_unknown",
                "The agent's protocol has not been detected yet.",
                f"trunkline agents refresh {name}",
            )
        yield _fixed_by(
            "no_target",
            "The migration has no target yet.",
            f"trunkline agents migrate ready {name} --to jsonrpc-2.0 --note TEXT",
        )
        return
    yield from _of_check(name, checked)
    yield from _of_shadow(name, state, counts)
    if state.ready is None:
        yield _fixed_by(
            "not_attested",
            "Not attested yet: the new version is deployed and documented, and the team is informed.",
            f"trunkline agents migrate ready {name} --note TEXT",
        )


def _fixed_by(code: BlockerCode, message: str, command: str, *, first: str = "") -> MigrationBlocker:
    """`first`: what to do before the command."""
    return MigrationBlocker(code=code, message=message, fix=first + command, fix_command=command)


def _of_check(name: str, checked: TargetCheck | None) -> Iterator[MigrationBlocker]:
    command = f"trunkline agents migrate check {name}"
    if checked is None:
        yield _fixed_by("check_missing", "The target has not been checked.", command)
    elif not checked.passed:
        yield _fixed_by(
            "check_failed",
            f"The check of the target failed: {checked.summary}.",
            f"{command} --active" if checked.needs_messages else command,
            first="" if checked.needs_messages else "Correct the agent, then: ",
        )


def _of_shadow(name: str, state: MigrationState, counts: Mapping[str, int]) -> Iterator[MigrationBlocker]:
    if not state.shadow_since:
        return
    limits = state.limits
    compared = sum(number for verdict, number in counts.items() if verdict in _COUNTED)
    if state.stage == "shadow" and compared < limits.comparisons:
        yield MigrationBlocker(
            code="too_few_comparisons",
            message=f"Too few comparisons: {compared} so far, and the minimum is {limits.comparisons}.",
            fix="Wait for more runs, shadow a larger share of them (--percent), or require fewer "
            "comparisons (--comparisons).",
        )
    disagreeing = compared - counts.get("agree", 0)
    if compared and disagreeing > limits.disagreement * compared:
        yield _fixed_by(
            "disagreement",
            f"Source and target disagree in {disagreeing} of {compared} answers, but the limit is "
            f"{limits.disagreement:.1%}.",
            f"trunkline agents migrate status {name}",
            first="See the differences: ",
        )
