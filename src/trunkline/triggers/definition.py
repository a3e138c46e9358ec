"""
What a trigger is made of, after its document has been checked.

A trigger starts runs of one workflow. `schedule` says when; `input` is a template for the run's input. The store keeps
the canonical form: equal content, equal bytes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import Json, encode

# What happens to a firing while the run of an earlier one goes on.
Overlap = Literal["skip", "queue", "cancel_previous", "allow"]
OVERLAPS: tuple[Overlap, ...] = ("skip", "queue", "cancel_previous", "allow")
# Which firings are made up for that were due while no executor ran.
CatchUp = Literal["none", "last", "all"]
CATCH_UPS: tuple[CatchUp, ...] = ("none", "last", "all")

DEFAULT_WINDOW = timedelta(days=1)


class ScheduleDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Exactly one of `cron`, `every` and `at` is given."""

    cron: str | None = None
    every: timedelta | None = None
    # In their order, without duplicates.
    at: tuple[Instant, ...] | None = None
    timezone: str = "UTC"
    jitter: timedelta = timedelta(0)
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    catch_up_window: timedelta = DEFAULT_WINDOW
    # Nothing fires before the one, or at the other and later.
    start: Instant | None = None
    end: Instant | None = None


class TriggerDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    description: str | None = None
    workflow: str
    version: int | None = None
    input: Json = msgspec.field(default_factory=dict[str, Json])
    enabled: bool = True
    schedule: ScheduleDefinition | None = None


_definitions: msgspec.json.Decoder[TriggerDefinition] = msgspec.json.Decoder(TriggerDefinition)


def canonical_form(definition: TriggerDefinition) -> bytes:
    return encode(definition)


def definition_from_canonical(canonical: bytes) -> TriggerDefinition:
    return _definitions.decode(canonical)
