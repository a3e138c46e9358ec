"""Rows of the cache of outputs, and their records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.agents.output_cache import ClaimAnswers, KeptOutput, OutputClaim
from trunkline.stores.rows import Row

KEPT_COLUMNS = "digest, output, size_bytes, run_id, step, workflow, agent, at, expires_at"


def kept_values(
    outputs: Sequence[KeptOutput],
) -> list[tuple[str, bytes, int, str, str, str, str, int, int]]:
    """Of several with one digest, the last."""
    return [
        (
            each.digest,
            each.output,
            len(each.output),
            each.run_id,
            each.step,
            each.workflow,
            each.agent,
            each.at,
            each.expires_at,
        )
        for _, each in sorted({each.digest: each for each in outputs}.items())
    ]


def kept_output(row: Row) -> KeptOutput:
    digest, output, _, run_id, step, workflow, agent, at, expires_at = row
    return KeptOutput(
        digest=digest,
        output=output,
        run_id=RunId(run_id),
        step=step,
        workflow=workflow,
        agent=agent,
        at=Instant(at),
        expires_at=Instant(expires_at),
    )


def output_claim(row: Row) -> OutputClaim:
    run_id, step, number, digest = row
    return OutputClaim(RunId(run_id), step, number, digest)


def fitting(sizes: Iterable[tuple[str, int]], max_bytes: int) -> list[str]:
    """As many digests as there is room for, and at least one."""
    chosen: list[str] = []
    left = max_bytes
    for digest, size in sizes:
        if chosen and size > left:
            break
        left -= size
        chosen.append(digest)
    return chosen


def found_answers(
    claims: Sequence[OutputClaim], known: set[str], outputs: Sequence[KeptOutput]
) -> ClaimAnswers:
    """The answers to the claims on these outputs."""
    by_digest = {each.digest: each for each in outputs}
    return ClaimAnswers(
        found=[(claim, by_digest[claim.digest]) for claim in claims if claim.digest in by_digest],
        again=[claim for claim in claims if claim.digest in known and claim.digest not in by_digest],
    )


def to_evict(entries: Iterable[tuple[str, int]], *, outputs: int, size_bytes: int) -> list[str]:
    """The first ones, so that there are so many fewer, and so many fewer bytes."""
    chosen: list[str] = []
    for digest, size in entries:
        if outputs <= 0 and size_bytes <= 0:
            break
        outputs -= 1
        size_bytes -= size
        chosen.append(digest)
    return chosen
