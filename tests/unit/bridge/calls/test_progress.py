"""What an agent says while it works: what is written of it before the call has ended."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.bridge.calls.progress import ProgressReporter
from trunkline.bridge.calls.results import CallProgress
from trunkline.messages import AgentTask, Progress
from trunkline.protocols import StreamUpdate
from trunkline.stores.base import ClaimedTask, TaskKey
from trunkline.telemetry.redaction import Redaction
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

TASK = AgentTask(task_id="r/a/0", run_id="r", step="a", agent="A", correlation_id="c")
REDACTION = Redaction.of("canary-4711")
TAKEN = StreamUpdate(remote_task_id="remote-1", context_id="c-1")


def claim(epoch: int = 1) -> ClaimedTask:
    return ClaimedTask(key=TaskKey("r/a/0", 1), task=TASK, epoch=epoch)


@pytest.fixture
def reports() -> list[CallProgress]:
    return []


@pytest.fixture
def reporter(reports: list[CallProgress]) -> ProgressReporter:
    return ProgressReporter(claim(), FakeClock(), "a2a-0.3", REDACTION, reports.append)


def said(reports: list[CallProgress]) -> list[tuple[str, list[str]]]:
    results = [item.result for item in reports]
    return [(result.number, [each.text for each in result.progress]) for result in results]


async def test_that_an_agent_has_the_task_is_written_while_its_stream_is_open(
    reporter: ProgressReporter, reports: list[CallProgress]
) -> None:
    reporter.add_event(TAKEN)
    await asyncio.sleep(0)
    answers = [item.answer for item in reports]
    assert [(each.holds, each.remote_task_id, each.context_id) for each in answers] == [
        (True, "remote-1", "c-1")
    ]


async def test_a_call_that_ends_in_the_same_batch_is_not_reported_as_running(
    reporter: ProgressReporter, reports: list[CallProgress]
) -> None:
    reporter.add_event(TAKEN)
    reporter.close()
    await asyncio.sleep(0)
    assert reports == []


async def test_what_comes_close_together_travels_as_one(
    reporter: ProgressReporter, reports: list[CallProgress]
) -> None:
    for text in ("It ", "is ", "sunny."):
        reporter.add(Progress(kind="artifact", artifact_id="a", text=text, append=True))
    reporter.close()
    assert said(reports) == [("1.1", ["It is sunny."])]


@pytest.mark.parametrize("cut", range(1, 11))
@pytest.mark.parametrize("is_reported_between", [False, True])
async def test_a_secret_that_comes_in_pieces_is_not_put_together(
    reporter: ProgressReporter, reports: list[CallProgress], cut: int, is_reported_between: bool
) -> None:
    for text in ("It is ", "canary-4711"[:cut], "canary-4711"[cut:] + "!"):
        reporter.add(Progress(kind="artifact", artifact_id="a", text=text, append=True))
        if is_reported_between:
            reporter.flush()
    reporter.close()
    assert "".join(text for _, texts in said(reports) for text in texts) == "It is [redacted]!"


async def test_text_that_only_begins_like_a_secret_is_reported_at_the_end(
    reporter: ProgressReporter, reports: list[CallProgress]
) -> None:
    reporter.add(Progress(kind="artifact", artifact_id="a", text="A can"))
    reporter.flush()
    reporter.close()
    assert [text for _, texts in said(reports) for text in texts] == ["A ", "can"]


async def test_each_piece_has_its_own_number_under_every_claim(reports: list[CallProgress]) -> None:
    for epoch in (1, 2):
        reporter = ProgressReporter(claim(epoch), FakeClock(), "a2a-0.3", REDACTION, reports.append)
        for text in ("first", "second"):
            reporter.add(Progress(kind="status", text=text))
            reporter.flush()
    numbers = [number for number, _ in said(reports)]
    assert len(set(numbers)) == len(numbers) == 4


async def test_what_is_said_whenever_the_agent_is_asked_has_the_same_number_each_time(
    reports: list[CallProgress],
) -> None:
    for epoch in (1, 2):
        ProgressReporter(claim(epoch), FakeClock(), "a2a-0.3", REDACTION, reports.append).report_once(
            "Reading"
        )
    (first, _), (second, _) = said(reports)
    assert first == second


async def test_an_endless_text_is_cut(reporter: ProgressReporter, reports: list[CallProgress]) -> None:
    reporter.add(Progress(kind="status", text="x" * 1_000_000))
    ((_, (text,)),) = said(reports)
    assert len(text) < 100_000
