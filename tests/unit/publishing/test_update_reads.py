"""Updates are made of events that are read once, however many there are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.machine.state import RunStatus
from trunkline.messages import CallerMessage
from trunkline.publishing.answers import AnswerReader
from trunkline.publishing.updates import MAX_KEPT_CHARACTERS, PartialArtifacts, Position, TaskUpdates, Update
from trunkline.services.runs.queries import RunQueries
from trunkline.stores.base import EventRecord
from trunkline.workflow import CompiledWorkflow, StepDefinition, WorkflowDefinition, compile_workflow

pytestmark = pytest.mark.anyio


class CountingQueries(RunQueries):
    """Gives the events of one run, and counts those that it has given."""

    def __init__(self, events: Sequence[EventRecord]) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._all = events
        self.read = 0

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        del run_id, step
        found = [event for event in self._all if event.seq > after][:limit]
        self.read += len(found)
        return found

    async def status(self, run_id: RunId) -> tuple[RunStatus, int]:
        del run_id
        return "RUNNING", len(self._all)


def progress(seq: int, words: str) -> EventRecord:
    news: Json = [{"kind": "artifact", "artifact_id": "a", "append": seq > 1, "text": words}]
    return EventRecord(seq, "StepProgress", Instant(0), encode({"step": "s", "news": news}))


def question(seq: int) -> EventRecord:
    waiting: JsonObject = {"kind": "input", "text": f"Question {seq}?"}
    return EventRecord(seq, "StepWaiting", Instant(0), encode({"step": "s", "waiting_for": waiting}))


@pytest.fixture
def workflow() -> CompiledWorkflow:
    steps = {"s": StepDefinition(name="s", agent="A")}
    return compile_workflow(WorkflowDefinition(name="w", steps=steps))


def updates_of(queries: CountingQueries, workflow: CompiledWorkflow) -> TaskUpdates:
    message = CallerMessage(message_id="m", context_id="c", parts=[])
    return TaskUpdates(queries, AnswerReader.__new__(AnswerReader), RunId("r"), message, workflow)


async def test_a_receiver_of_many_pieces_reads_each_event_at_most_twice(workflow: CompiledWorkflow) -> None:
    # Events that callers are not told of are in between.
    events = [
        progress(seq, "x") if seq % 3 == 1 else EventRecord(seq, "StepStarted", Instant(0), b"{}")
        for seq in range(1, 601)
    ]
    queries = CountingQueries(events)
    updates = updates_of(queries, workflow)
    for event in events:
        if event.type == "StepProgress":
            assert len(await updates.of_event(event)) == 1
    assert queries.read <= 4 * len(events)
    before = queries.read
    (artifact,) = await updates.partial_artifacts(600)
    assert artifact["parts"] == [{"text": "x" * 200}]
    assert queries.read - before <= 4


async def test_a_stream_reads_each_event_once(workflow: CompiledWorkflow) -> None:
    events = [
        progress(seq, "x") if seq % 3 == 1 else EventRecord(seq, "StepStarted", Instant(0), b"{}")
        for seq in range(1, 301)
    ]
    queries = CountingQueries(events)
    updates = updates_of(queries, workflow)
    found: list[Update] = []
    position = Position(0)
    while position.seq < 300:
        more, position, _ = await updates.after(position)
        found += more
    assert len(found) == 100
    # The first page asks for a few events, and for one more than it gives.
    assert queries.read <= 310


async def test_an_update_that_is_made_once_more_is_the_same(workflow: CompiledWorkflow) -> None:
    events = [progress(1, "a"), progress(2, "b"), progress(3, "c")]
    updates = updates_of(CountingQueries(events), workflow)
    first = [await updates.of_event(event) for event in events]
    assert await updates.of_event(events[2]) == first[2]
    assert (await updates.partial_artifacts(3))[0]["parts"] == [{"text": "abc"}]
    assert (await updates.partial_artifacts(2))[0]["parts"] == [{"text": "ab"}]


async def test_much_text_is_read_again_and_not_kept(workflow: CompiledWorkflow) -> None:
    half = "x" * (MAX_KEPT_CHARACTERS // 2)
    events = [progress(seq, half) for seq in range(1, 5)]
    updates = updates_of(CountingQueries(events), workflow)
    pieces = [await updates.of_event(event) for event in events]
    appended = [update.body["artifactUpdate"] for [update] in pieces]
    assert [isinstance(each, dict) and each["append"] for each in appended] == [False, True, True, True]
    assert (await updates.partial_artifacts(4))[0]["parts"] == [{"text": half * 4}]
    kept = PartialArtifacts(10)
    for _ in range(3):
        kept.add({"artifact_id": "a", "append": True, "text": "x" * 10})
    assert (kept.is_whole, kept.whole()) == (False, [{}])


async def test_the_last_question_is_found_behind_many_others(workflow: CompiledWorkflow) -> None:
    events: list[EventRecord] = []
    for seq in range(1, 6_000, 2):
        events += [
            question(seq),
            EventRecord(seq + 1, "RunWaiting", Instant(0), encode({"steps": ["s"]})),
        ]
    queries = CountingQueries(events)
    updates = updates_of(queries, workflow)
    for event in events:
        if event.type == "RunWaiting":
            (update,) = await updates.of_event(event)
            assert f"Question {event.seq - 1}?" in str(update.body)
    assert queries.read <= 4 * len(events)
