"""What an agent says while it works: what is written of it before the call has ended."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.bridge.calls.progress import ProgressReporter
from trunkline.bridge.calls.results import CallUpdate
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
def heard() -> list[CallUpdate]:
    return []


@pytest.fixture
def news(heard: list[CallUpdate]) -> ProgressReporter:
    return ProgressReporter(claim(), FakeClock(), "a2a-0.3", REDACTION, heard.append)


def said(heard: list[CallUpdate]) -> list[tuple[str, list[str]]]:
    results = [item.result for item in heard if item.result is not None]
    return [(result.number, [each.text for each in result.progress]) for result in results]


async def test_that_an_agent_has_the_task_is_written_while_its_stream_is_open(
    news: ProgressReporter, heard: list[CallUpdate]
) -> None:
    news.add_event(TAKEN)
    await asyncio.sleep(0)
    answers = [item.answer for item in heard]
    assert [(each.holds, each.remote_task_id, each.context_id) for each in answers if each is not None] == [
        (True, "remote-1", "c-1")
    ]


async def test_a_call_that_ends_with_the_same_breath_is_not_told_as_going_on(
    news: ProgressReporter, heard: list[CallUpdate]
) -> None:
    news.add_event(TAKEN)
    news.close()
    await asyncio.sleep(0)
    assert heard == []


async def test_what_comes_close_together_travels_as_one(
    news: ProgressReporter, heard: list[CallUpdate]
) -> None:
    for text in ("It ", "is ", "sunny."):
        news.add(Progress(kind="artifact", artifact_id="a", text=text, append=True))
    news.close()
    assert said(heard) == [("1.1", ["It is sunny."])]


@pytest.mark.parametrize("cut", range(1, 11))
@pytest.mark.parametrize("is_told_between", [False, True])
async def test_a_secret_that_comes_in_pieces_is_not_put_together(
    news: ProgressReporter, heard: list[CallUpdate], cut: int, is_told_between: bool
) -> None:
    for text in ("It is ", "canary-4711"[:cut], "canary-4711"[cut:] + "!"):
        news.add(Progress(kind="artifact", artifact_id="a", text=text, append=True))
        if is_told_between:
            news.flush()
    news.close()
    assert "".join(text for _, texts in said(heard) for text in texts) == "It is [redacted]!"


async def test_what_only_begins_like_a_secret_is_told_at_the_end(
    news: ProgressReporter, heard: list[CallUpdate]
) -> None:
    news.add(Progress(kind="artifact", artifact_id="a", text="A can"))
    news.flush()
    news.close()
    assert [text for _, texts in said(heard) for text in texts] == ["A ", "can"]


async def test_each_piece_has_a_number_of_its_own_whoever_tells_it(heard: list[CallUpdate]) -> None:
    for epoch in (1, 2):
        news = ProgressReporter(claim(epoch), FakeClock(), "a2a-0.3", REDACTION, heard.append)
        for text in ("first", "second"):
            news.add(Progress(kind="status", text=text))
            news.flush()
    numbers = [number for number, _ in said(heard)]
    assert len(set(numbers)) == len(numbers) == 4


async def test_what_is_said_whenever_the_agent_is_asked_has_the_same_number_each_time(
    heard: list[CallUpdate],
) -> None:
    for epoch in (1, 2):
        ProgressReporter(claim(epoch), FakeClock(), "a2a-0.3", REDACTION, heard.append).report_once("Reading")
    (first, _), (second, _) = said(heard)
    assert first == second


async def test_an_endless_text_is_cut(news: ProgressReporter, heard: list[CallUpdate]) -> None:
    news.add(Progress(kind="status", text="x" * 1_000_000))
    ((_, (text,)),) = said(heard)
    assert len(text) < 100_000
