"""Steps that waited for a person before the store could list them are listed after its upgrade."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.backends import OpenStore
from tests.contract.samples import NOW, insert, new_run, run_id, transition, write

from trunkline.clock import Instant
from trunkline.machine.state import StepState, WaitingFor
from trunkline.stores.schema import downgrade_schema, upgrade_schema

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(request: pytest.FixtureRequest, open_store: OpenStore, tmp_path: Path) -> str:
    assert isinstance(request.node, pytest.Function)
    if request.node.callspec.params["open_store"] == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'trunkline.db'}"


async def test_a_step_that_waits_is_found_after_an_upgrade(open_store: OpenStore, url: str) -> None:
    # As a program of that time has written it, with what no JSON type of a database takes.
    asks = WaitingFor(kind="input", text="Which\u0000?")
    lost = WaitingFor(kind="outcome", text="Lost.")
    backs_off = WaitingFor(kind="retry", text="Busy.", until=Instant(7))
    async with open_store() as store:
        await insert(store, new_run(1), new_run(2))
        steps = [
            StepState(name="a", status="WAITING", attempts=1, waiting_for=asks, started_at=Instant(5)),
            StepState(name="b", status="WAITING", attempts=1, waiting_for=backs_off, started_at=Instant(4)),
            StepState(name="c", status="RUNNING", attempts=1, started_at=Instant(3)),
        ]
        await write(store, transition(1, steps=steps))
        unknown = StepState(name="a", status="OUTCOME_UNKNOWN", attempts=1, waiting_for=lost)
        await write(store, transition(2, steps=[unknown]))
    await downgrade_schema(url, "0004")
    await upgrade_schema(url)
    async with open_store() as store:
        found = await store.runs.waiting_steps(limit=9)
        of_workflow = await store.runs.waiting_steps(limit=9, workflow="w", kind="outcome")
    assert [(step.place, step.waiting_for.text) for step in found] == [
        ((Instant(5), run_id(1), "a"), "Which\u0000?"),
        ((NOW, run_id(2), "a"), "Lost."),
    ]
    assert [step.place.run_id for step in of_workflow] == [run_id(2)]
