"""The history that people read of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, get_args

import msgspec
import pytest

from trunkline.clock import Instant
from trunkline.machine.events import Event, Payload, encode_event, step_event_prefix
from trunkline.machine.state import WaitingFor
from trunkline.messages import StepError

PAYLOAD = Payload(b"{}")
SAMPLES: dict[str, object] = {
    "step": "check[17]",
    "round": 1,
    "attempt": 1,
    "task_id": "t",
    "agent": "A",
    "run_id": "r",
    "workflow": "w",
    "items": 2,
    "remote_task_id": "remote",
    "news": (),
    "due": Instant(0),
    "error": StepError(code="agent_timeout", message="Too late", fix=""),
    "answered": True,
    "reason": "Nobody needs it.",
    "waiting_for": WaitingFor(kind="input", text="May I?"),
    "input": PAYLOAD,
    "output": PAYLOAD,
    "reply": PAYLOAD,
    "kind": "sleep",
    "event_id": "e",
    "event": PAYLOAD,
    "by": "ada",
    "answer": "approve",
    "to": ("boss",),
    "repair": 1,
    "errors": ("output.data: is wrong",),
    "stopped": ("B",),
    "digest": "d",
    "number": 1,
    "leads": True,
    "origin": "other",
    "at": Instant(0),
}
OF_STEPS = [kind for kind in get_args(Event) if "step" in kind.__struct_fields__]


@pytest.mark.parametrize("kind", OF_STEPS, ids=lambda kind: kind.__name__)
def test_what_happens_to_a_step_begins_with_its_name(kind: type[Event]) -> None:
    needed = [field.name for field in msgspec.structs.fields(kind) if field.required]
    event = cast("Callable[..., Event]", kind)(**{name: SAMPLES[name] for name in needed})
    assert encode_event(event).startswith(step_event_prefix("check[17]"))
    assert not encode_event(event).startswith(step_event_prefix("check"))
