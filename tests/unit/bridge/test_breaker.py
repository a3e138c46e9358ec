"""What the end of a call tells about its agent, and what the bridge notes, counts and says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.contract.bridges import ME, claim, register
from tests.contract.samples import queue, task
from tests.unit.bridge.test_task_claimer import FakeBroker, HangingAgent, call_result

from trunkline.agents import AgentOptions, BreakerPolicy
from trunkline.bridge.answer_writer import AnswerWriter
from trunkline.bridge.breaker import BreakerObserver, judge_error
from trunkline.bridge.calls.active_calls import ActiveCalls
from trunkline.bridge.calls.results import CallProgress, CallResult, CallUpdate
from trunkline.bridge.task_claimer import TaskClaimer
from trunkline.messages import ERROR_CODES, StepError
from trunkline.stores.base import ClaimedTask, Store
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

POLICY = BreakerPolicy(failures=2, open_ms=1_000)
STRICT = BreakerPolicy(jsonrpc_errors=True)
WITH_BREAKER = AgentOptions(breaker=POLICY)
DOWN = StepError(code="agent_unreachable", message="The agent at http://a does not take connections.")

# True: the agent's fault; False: it answered; None: it was not asked.
VERDICTS = {
    "agent_unknown": None,
    "agent_dns_failed": True,
    "agent_unreachable": True,
    "agent_tls_failed": True,
    "agent_address_forbidden": None,
    "agent_transport_unavailable": None,
    "agent_url_invalid": None,
    "agent_program_unknown": None,
    "agent_secret_unreadable": None,
    "secret_missing": None,
    "secret_unreadable": None,
    "agent_token_refused": None,
    "agent_token_unavailable": True,
    "agent_timeout": True,
    "agent_connection_lost": True,
    "agent_task_lost": True,
    "agent_unavailable": True,
    "agent_redirected": False,
    "agent_http_error": False,
    "agent_answer_too_large": True,
    "agent_answer_compressed": True,
    "agent_answer_malformed": True,
    "agent_response_id_mismatch": True,
    "agent_batch_answer_missing": True,
    "agent_jsonrpc_error": False,
    "agent_reported_error": False,
    "agent_task_failed": False,
    "agent_task_unfinished": False,
    "agent_protocol_unclear": True,
    "request_not_encodable": None,
    "blob_missing": None,
    "attachments_too_large": None,
    "out_of_resources": None,
    "internal_error": None,
}
# No call ends with one of these.
OF_RUNS = {
    "run_too_large",
    "expression_failed",
    "output_failed",
    "outcome_unknown",
    "deadline_exceeded",
    "reply_timed_out",
    "ask_timeout",
    "not_started",
    "block_failed",
    "max_rounds",
    "wait_timeout",
    "output_invalid",
    "join_failed",
    "workflow_unknown",
    "child_input_invalid",
    "child_too_deep",
    "agent_not_allowed",
    "no_agent_found",
    "child_failed",
    "child_cancelled",
}


def verdict(code: str, policy: BreakerPolicy = POLICY, http_status: int | None = None) -> bool | None:
    return judge_error(StepError(code=code, message="why", http_status=http_status), policy).failed


def test_every_error_of_a_call_is_judged() -> None:
    assert {code: verdict(code) for code in VERDICTS} == VERDICTS
    assert {*VERDICTS, *OF_RUNS} == set(ERROR_CODES)


@pytest.mark.parametrize(
    ("status", "failed"),
    [
        (500, True),
        (503, True),
        (599, True),
        (408, True),
        (429, True),
        (400, False),
        (404, False),
        (422, False),
    ],
)
def test_a_status_counts_unless_it_is_about_the_request(status: int, failed: bool) -> None:
    assert verdict("agent_http_error", http_status=status) is failed


def test_an_error_of_json_rpc_counts_as_the_policy_says() -> None:
    assert verdict("agent_jsonrpc_error", POLICY, 500) is False
    assert verdict("agent_jsonrpc_error", STRICT) is True


class PromptAgent(HangingAgent):
    """An agent that answers at once."""

    async def call(self, claim: ClaimedTask, report: Callable[[CallUpdate], None]) -> CallResult:
        del report
        return call_result(claim, "success")


class BreakerSetup:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.metrics = Metrics()
        self.calls = ActiveCalls(PromptAgent())
        self.answers = AnswerWriter(FakeBroker(), self.calls, ME, BreakerObserver(self.metrics))
        self.claims = TaskClaimer(FakeBroker(), self.calls, ME, asyncio.Event())

    async def ends(self, *items: CallUpdate, commits: bool = True) -> None:
        """A turn in which these calls are over."""
        self.calls.updates += items
        with _undone(commits):
            async with self._store.transaction() as tx:
                await self.answers.work(tx)
                if not commits:
                    raise _CallRefused
        (self.answers.committed if commits else self.answers.rolled_back)()

    def opened(self) -> float | None:
        return self.metrics.registry.get_sample_value("agent_breaker_opened_total", {"agent_name": "A"})


class _CallRefused(Exception):
    pass


@contextmanager
def _undone(commits: bool) -> Generator[None]:
    try:
        yield
    except _CallRefused:
        assert not commits


async def claimed(store: Store, number: int, options: AgentOptions = WITH_BREAKER) -> list[ClaimedTask]:
    await register(store, "A", options=options)
    await queue(store, *(task(each) for each in range(1, number + 1)))
    return await claim(store)


async def failures(store: Store) -> int:
    return (await store.agents.load("A")).state.breaker.failures


async def test_an_opening_is_counted_and_logged_once(store: Store) -> None:
    bridge = BreakerSetup(store)
    claims = await claimed(store, 4)
    with capture_logs() as lines:
        for each in claims:
            await bridge.ends(call_result(each, "error", DOWN))
    opened = [line for line in lines if line["event"] == log_events.BREAKER_OPENED]
    assert [(line["agent"], line["reason"]) for line in opened] == [
        ("A", f"2 consecutive failures, the last one: {DOWN.message}")
    ]
    assert bridge.opened() == 1


async def test_what_is_rolled_back_is_noted_when_it_is_written(store: Store) -> None:
    bridge = BreakerSetup(store)
    first, second = await claimed(store, 2)
    with capture_logs() as lines:
        await bridge.ends(
            call_result(first, "error", DOWN), call_result(second, "error", DOWN), commits=False
        )
        assert await failures(store) == 0
        assert bridge.opened() is None
        await bridge.ends()
    assert await failures(store) == 2
    assert [line["event"] for line in lines].count(log_events.BREAKER_OPENED) == 1


async def test_a_call_that_goes_on_and_a_question_how_it_stands_count_for_nothing(store: Store) -> None:
    bridge = BreakerSetup(store)
    first, second = await claimed(store, 2)
    ended = call_result(first, "error", DOWN)
    assert ended.result is not None
    streaming = CallProgress(
        claim=first, answer=msgspec.structs.replace(ended.answer, holds=True), result=ended.result
    )
    asked = call_result(msgspec.structs.replace(second, remote_task_id="r"), "error", DOWN)
    await bridge.ends(streaming, asked)
    assert await failures(store) == 0


async def test_a_call_that_was_broken_off_is_neither_a_failure_nor_a_success(store: Store) -> None:
    bridge = BreakerSetup(store)
    first, second, third = await claimed(store, 3)
    await bridge.ends(call_result(first, "error", DOWN), call_result(second, "cancelled"))
    assert await failures(store) == 1
    await bridge.ends(call_result(third, "success"))
    assert await failures(store) == 0


async def test_nothing_is_noted_of_an_agent_without_a_breaker(store: Store) -> None:
    bridge = BreakerSetup(store)
    for each in await claimed(store, 3, AgentOptions()):
        await bridge.ends(call_result(each, "error", DOWN))
    assert await failures(store) == 0


async def test_probing_and_closing_are_logged_once(store: Store, clock: FakeClock) -> None:
    bridge = BreakerSetup(store)
    for each in await claimed(store, 2):
        await bridge.ends(call_result(each, "error", DOWN))
    await queue(store, task(8), task(9))
    clock.advance(timedelta(seconds=1))
    with capture_logs() as lines:
        async with store.transaction() as tx:
            await bridge.claims.work(tx)
        bridge.claims.committed()
        await bridge.calls.drain(5)
        await bridge.ends()
    told = [line for line in lines if line["event"] in {log_events.BREAKER_PROBED, log_events.BREAKER_CLOSED}]
    assert [(line["event"], line["agent"]) for line in told] == [
        (log_events.BREAKER_PROBED, "A"),
        (log_events.BREAKER_CLOSED, "A"),
    ]


async def test_an_agent_that_asks_back_or_goes_to_work_has_answered(store: Store) -> None:
    bridge = BreakerSetup(store)
    first, second, third, fourth = await claimed(store, 4)
    await bridge.ends(call_result(first, "error", DOWN), call_result(second, "interrupted"))
    assert await failures(store) == 0
    await bridge.ends(call_result(third, "error", DOWN), call_result(fourth, "working"))
    assert await failures(store) == 0
