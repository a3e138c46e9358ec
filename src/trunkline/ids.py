"""
Identifiers: types that keep them apart, and ids that are derived from others.

Nothing here reads a clock or draws a random number: `id_generation.py` does.
"""

from __future__ import annotations

import hashlib
import re
from typing import NewType
from zlib import crc32

from trunkline.clock import Instant

RunId = NewType("RunId", str)
TaskId = NewType("TaskId", str)

# What the 48 bits of an id can hold.
_MOST_MILLISECONDS = 2**48 - 1
_VERSION_7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def made_at(id_: str) -> Instant | None:
    """When `new_id` generated it, to the millisecond; None if the text is not such an id."""
    if not _VERSION_7.fullmatch(id_):
        return None
    return Instant(int(id_[:8] + id_[9:13], 16) * 1_000)


def first_run_id(at: Instant) -> RunId:
    """Lower than the id of any run that was begun at that millisecond or later, higher than any other."""
    digits = f"{min(max(at // 1_000, 0), _MOST_MILLISECONDS):012x}"
    return RunId(f"{digits[:8]}-{digits[8:]}-0000-0000-000000000000")


def child_run_id(parent: RunId, step: str, attempt: int) -> RunId:
    """
    The run that a step of `parent` begins, a UUID of version 7 with the parent's time.

    Derived, not random: deciding the step again after a crash starts no second run, and the child is found without a
    query in order to stop it.
    """
    digest = hashlib.sha256(f"{parent}/{step}/{attempt}".encode()).hexdigest()
    variant = "89ab"[int(digest[3], 16) % 4]
    return RunId(f"{parent[:13]}-7{digest[:3]}-{variant}{digest[4:7]}-{digest[7:19]}")


def question_id(run: str, step: str, attempts: int, replies: int) -> str:
    """Of an item of the inbox. A step may ask more than once: each question is a separate item."""
    return f"{run}.{step}.{attempts}.{replies}"


def number_of(id_: str) -> int:
    """The same for the same id everywhere; different ids are spread evenly."""
    return crc32(id_.encode(errors="replace"))


def task_id(run: RunId, step: str, answered_failures: int, replies: int = 0, number: int = 0) -> TaskId:
    # Derived, not random: after a crash or a timeout the same task gets the same id, so an agent can see the
    # repetition and a late answer still finds its step. Only an answered failure, or a person's reply to
    # the agent's question, makes a new one. `number`: of the agents that the step has called, which one has it.
    suffix = f".{replies}" if replies else ""
    if number:
        suffix = f"{suffix}~{number}"
    return TaskId(f"{run}/{step}/{answered_failures}{suffix}")
