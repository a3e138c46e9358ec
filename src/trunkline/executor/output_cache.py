"""
The cache of outputs: what steps ask of it and put into it, in the transaction that decides them.

What it says goes into the input queues of the runs. A step that waits for an output is only woken when that is there;
it then asks again, so that no transaction carries the output for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from trunkline.clock import after
from trunkline.ids import RunId, number_of
from trunkline.machine.effects import ClaimOutput, KeepOutput, ReleaseOutput
from trunkline.machine.inputs import CachedOutput, LookupOutcome, OutputLookedUp
from trunkline.machine.turn import Turn
from trunkline.stores.base import InputsQueued, QueuedInput, Transaction
from trunkline.stores.port.agents.output_cache import KeptOutput, OutputClaim

# Each transaction that keeps an output counts them all.
MAX_OUTPUTS = 10_000
DEFAULT_MAX_BYTES = 256 * 1024 * 1024
# Of the outputs that one transaction gives to steps.
_MAX_ANSWER_BYTES = 16 * 1024 * 1024


class _Effects(NamedTuple):
    """What the turns mean for the cache; of one step, its last word."""

    kept: list[KeptOutput]
    claims: dict[tuple[RunId, str], OutputClaim]
    released: dict[tuple[RunId, str], OutputClaim]


class OutputCache:
    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES, max_outputs: int = MAX_OUTPUTS) -> None:
        self._max_bytes = max_bytes
        self._max_outputs = max_outputs

    async def write(self, tx: Transaction, turns: Sequence[Turn]) -> bool:
        """True: runs have something to take in."""
        kept, claims, released = _effects(tx, turns)
        if not (kept or claims or released):
            return False
        digests = {
            *(each.digest for each in kept),
            *(claim.digest for claim in (*claims.values(), *released.values())),
        }
        await tx.output_cache.lock(sorted(digests))
        items: list[QueuedInput] = []
        if kept:
            own = {(each.run_id, each.step) for each in kept}
            waiting = await tx.output_cache.keep(kept)
            items += [_answer(claim, "again") for claim in waiting if (claim.run_id, claim.step) not in own]
            await tx.output_cache.evict(max_outputs=self._max_outputs, max_bytes=self._max_bytes)
        if released:
            leads = await tx.output_cache.release(list(released.values()))
            items += [_answer(claim, "lead") for claim in leads]
        if claims:
            answers = await tx.output_cache.claim(list(claims.values()), max_bytes=_MAX_ANSWER_BYTES)
            items += [_answer(claim, "found", output) for claim, output in answers.found]
            items += [_answer(claim, "again") for claim in answers.again]
            items += [_answer(claim, "lead") for claim in answers.leads]
            items += [_answer(claim, "alone") for claim in answers.alone]
        if not items:
            return False
        await tx.input_queue.put(items)
        await tx.notify(InputsQueued(wakes=number_of(items[0].run_id)))
        return True


def _effects(tx: Transaction, turns: Sequence[Turn]) -> _Effects:
    found = _Effects([], {}, {})
    for turn in turns:
        run_id = turn.state.id
        for effect in turn.effects:
            match effect:
                case ClaimOutput(step, number, digest):
                    found.claims[run_id, step] = OutputClaim(run_id, step, number, digest)
                    found.released.pop((run_id, step), None)
                case ReleaseOutput(step, digest):
                    found.released[run_id, step] = OutputClaim(run_id, step, 0, digest)
                    found.claims.pop((run_id, step), None)
                case KeepOutput():
                    found.kept.append(_kept(tx, turn, effect))
                case _:
                    pass
    return found


def _kept(tx: Transaction, turn: Turn, effect: KeepOutput) -> KeptOutput:
    return KeptOutput(
        digest=effect.digest,
        output=effect.output,
        run_id=turn.state.id,
        step=effect.step,
        workflow=turn.state.workflow.definition.name,
        agent=effect.agent,
        at=tx.now,
        expires_at=after(tx.now, effect.ttl),
    )


def _answer(claim: OutputClaim, outcome: LookupOutcome, found: KeptOutput | None = None) -> QueuedInput:
    cached = None
    if found is not None:
        cached = CachedOutput(msgspec.Raw(found.output), found.run_id, found.step, found.at)
    item = OutputLookedUp(claim.step, claim.number, outcome, cached)
    return QueuedInput(claim.run_id, f"output/{claim.step}/{claim.number}/{outcome}", item)
