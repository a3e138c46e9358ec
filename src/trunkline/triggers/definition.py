"""
What a trigger is made of, after its document has been checked.

A trigger starts runs of one workflow. `schedule` says when, or `webhook` who may ask for it, or `event` or `run` what
must have happened; `input` is a template for the run's input. The store keeps the canonical form: equal content,
equal bytes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.jsontypes import Json, encode
from trunkline.triggers.signatures import Scheme
from trunkline.workflow.flow_control.definition import FlowControl

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


# What a webhook answers: the run that it started, or that run's output.
Respond = Literal["run", "output"]
RESPONSES: tuple[Respond, ...] = ("run", "output")
DEFAULT_WAIT = timedelta(seconds=30)
DEFAULT_BODY_BYTES = 1024 * 1024


class DeliveryRate(msgspec.Struct, frozen=True, kw_only=True):
    """How many deliveries are accepted in a time."""

    count: int
    per: timedelta


DEFAULT_RATE = DeliveryRate(count=600, per=timedelta(minutes=1))


class WebhookDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    scheme: Scheme
    # Names of secrets; a delivery that is signed with any of them is accepted.
    secrets: tuple[str, ...] = ()
    # None: that of the scheme.
    header: str | None = None
    # A CEL expression; a delivery for which it is false starts nothing.
    filter: str | None = None
    # A template; None: what the scheme has for it.
    idempotency_key: str | None = None
    respond: Respond = "run"
    # How long the answer waits for the output.
    wait: timedelta = DEFAULT_WAIT
    rate: DeliveryRate = DEFAULT_RATE
    max_body_bytes: int = DEFAULT_BODY_BYTES


# How a run ends.
EndStatus = Literal["COMPLETED", "FAILED", "CANCELLED"]
END_STATUSES: tuple[EndStatus, ...] = ("COMPLETED", "FAILED", "CANCELLED")


class EventDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A received event of one of these types."""

    types: tuple[str, ...]
    # A CEL expression; an event for which it is false starts nothing.
    filter: str | None = None
    # A template; events with the same key start one run.
    idempotency_key: str | None = None


class RunEndDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a run of a workflow, with one of these statuses."""

    workflow: str
    statuses: tuple[EndStatus, ...] = ("COMPLETED",)
    filter: str | None = None


class TriggerDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    description: str | None = None
    workflow: str
    version: int | None = None
    input: Json = msgspec.field(default_factory=dict[str, Json])
    enabled: bool = True
    schedule: ScheduleDefinition | None = None
    webhook: WebhookDefinition | None = None
    event: EventDefinition | None = None
    run: RunEndDefinition | None = None
    flow: FlowControl | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """What it listens to while it is not paused."""
        if not self.enabled:
            return ()
        if self.event is not None:
            return tuple(event_topic(type_) for type_ in self.event.types)
        if self.run is not None:
            return tuple(run_end_topic(self.run.workflow, status) for status in self.run.statuses)
        return ()


def event_topic(type_: str) -> str:
    return f"event/{type_}"


def run_end_topic(workflow: str, status: str) -> str:
    return f"run/{status}/{workflow}"


_definitions: msgspec.json.Decoder[TriggerDefinition] = msgspec.json.Decoder(TriggerDefinition)


def canonical_form(definition: TriggerDefinition) -> bytes:
    return encode(definition)


def definition_from_canonical(canonical: bytes) -> TriggerDefinition:
    return _definitions.decode(canonical)
