from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.jsontypes import encode
from trunkline.messages import AgentTask, TraceContext
from trunkline.messages.codec import decode_task, encode_task

IDS = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_context_is_taken_as_it_came() -> None:
    assert TraceContext.read(f"00-{IDS}".encode(), b"a=1,b=2") == TraceContext(f"00-{IDS}", "a=1,b=2")


def test_of_a_later_version_what_is_known_is_passed_on() -> None:
    assert TraceContext.read(f"cc-{IDS}-what-the-future-will-be-like".encode()) == TraceContext(f"00-{IDS}")


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "00",
        f"ff-{IDS}",
        f"00-{IDS}-more",
        f"00-{IDS.upper()}",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        f"00-{IDS}\r\nX-Evil: 1",
    ],
)
def test_what_is_broken_is_no_context(broken: str) -> None:
    assert TraceContext.read(broken.encode()) is None


@pytest.mark.parametrize("state", [b"", b"a=1\r\nX-Evil: 1", b"x" * 513, "ü=1".encode()])
def test_an_invalid_trace_state_is_dropped(state: bytes) -> None:
    assert TraceContext.read(f"00-{IDS}".encode(), state) == TraceContext(f"00-{IDS}")


@given(st.binary(max_size=100), st.binary(max_size=600))
def test_whatever_comes_what_is_passed_on_can_be_a_header(parent: bytes, state: bytes) -> None:
    for found in (TraceContext.read(parent, state), TraceContext.read(f"00-{IDS}".encode(), state)):
        if found is not None:
            assert (found.traceparent + (found.tracestate or "")).isprintable()


def test_a_task_carries_its_trace_in_the_message_and_in_the_headers_of_its_record() -> None:
    task = AgentTask(task_id="t", run_id="r", trace=TraceContext(f"00-{IDS}", "a=1"))
    outgoing = encode_task(task, "tasks")
    assert dict(outgoing.headers)["traceparent"] == f"00-{IDS}".encode()
    assert dict(outgoing.headers)["tracestate"] == b"a=1"
    assert decode_task(outgoing.value).trace == task.trace


def test_a_task_without_a_trace_says_nothing_of_one() -> None:
    task = AgentTask(task_id="t", run_id="r")
    assert b"trace" not in encode(task)
    assert "traceparent" not in dict(encode_task(task, "tasks").headers)
