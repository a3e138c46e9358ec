"""Whatever an agent answers, or does instead of answering, a check of it ends with a report that can be shown."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.agents.check_reports import AgentCheckReport
from trunkline.checker import CheckedAgent, Checker
from trunkline.cli.rendering.check_junit import junit_xml
from trunkline.cli.rendering.check_markdown import markdown
from trunkline.jsontypes import encode
from trunkline.protocols import AgentAnswer
from trunkline.system_clock import SystemClock
from trunkline.transports.base import StreamedAnswer, TransportError

PROTOCOLS = [
    "auto",
    "simple-a2a",
    "jsonrpc-2.0",
    "a2a-0.1",
    "a2a-0.3",
    "a2a-1.0",
    "a2a-1.0-http",
    "jsonrpc-call",
]

_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-40_000, 3)
    | st.sampled_from(["2.0", "completed", "failed", "user", ""])
)
_IN_A_TASK = ("artifacts", "history", "parts", "kind", "text", "role")
# Names that mean something, with what they are not meant to have.
_NAMES = st.sampled_from(
    (
        "jsonrpc",
        "id",
        "result",
        "error",
        "code",
        "message",
        "status",
        "state",
        "task",
        "contextId",
        *_IN_A_TASK,
    )
)
ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=5),
    max_leaves=12,
)
_MESSAGES = (
    st.lists(st.fixed_dictionaries({"role": ANYTHING, "parts": ANYTHING}) | ANYTHING, max_size=2) | ANYTHING
)
_TASKS = st.fixed_dictionaries(
    {"status": st.fixed_dictionaries({"state": _LEAVES}) | ANYTHING},
    optional={
        "artifacts": _MESSAGES,
        "history": _MESSAGES,
        "id": _LEAVES,
        "contextId": _LEAVES,
        "kind": _LEAVES,
    },
)
_RESULTS = _TASKS | st.fixed_dictionaries({"task": _TASKS}) | ANYTHING
ENVELOPES = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": _LEAVES, "result": _RESULTS})
BODIES = ENVELOPES.map(encode) | ANYTHING.map(encode) | st.binary(max_size=20)
HEADERS = st.dictionaries(
    st.sampled_from(["content-type", "location", "content-encoding"]),
    st.sampled_from(["application/json", "text/html", "gzip", "/x"]),
)
ANSWERS = st.builds(
    AgentAnswer, st.sampled_from([200, 200, 200, 201, 302, 400, 401, 404, 500]), HEADERS, BODIES
)
FAILURES = st.sampled_from(
    [
        "agent_unreachable",
        "agent_timeout",
        "agent_connection_lost",
        "agent_answer_too_large",
        "agent_tls_failed",
    ]
)


class RandomAgent:
    """Gives the answers in turn, and begins again when there are no more."""

    def __init__(self, answers: list[AgentAnswer | str]) -> None:
        self._answers = answers
        self._asked = 0

    def _next(self) -> AgentAnswer:
        answer = self._answers[self._asked % len(self._answers)]
        self._asked += 1
        if isinstance(answer, str):
            raise TransportError(answer, "It did not work out.")
        return answer

    async def post(self, *_: object, **__: object) -> AgentAnswer:
        return self._next()

    async def get(self, *_: object, **__: object) -> AgentAnswer:
        return self._next()

    def stream(self, *_: object, **__: object) -> AbstractAsyncContextManager[StreamedAnswer]:
        raise NotImplementedError


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=20)
@given(answers=st.lists(ANSWERS | FAILURES, min_size=1, max_size=8))
def test_a_check_ends_with_a_report(protocol: str, answers: list[AgentAnswer | str]) -> None:
    checker = Checker(RandomAgent(answers), SystemClock())
    report = asyncio.run(
        checker.check(CheckedAgent(url="http://agent.example/", protocol=protocol), active=True)
    )
    assert report.passed == (report.failures() == [])
    assert report.passed == (report.grade in ("A", "B", "C"))
    assert all(found.seen and found.evidence is not None for found in report.failures())
    assert msgspec.json.decode(encode(report), type=AgentCheckReport) == report
    assert Xml.fromstring(junit_xml(report)).tag == "testsuites"  # noqa: S314 - our own
    assert markdown(report).startswith("# Check of")
