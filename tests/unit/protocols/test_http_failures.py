"""What HTTP itself says about an answer."""

from __future__ import annotations

import pytest

from trunkline.messages import AgentTask
from trunkline.protocols import AgentAnswer, Failed, SimpleA2AAdapter
from trunkline.protocols.http_failures import excerpt, failure_without_body, retry_after_ms

NOW = "Wed, 21 Oct 2015 07:28:00 GMT"


def answer(status: int, body: bytes = b"", **headers: str) -> AgentAnswer:
    return AgentAnswer(
        status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=body
    )


@pytest.mark.parametrize(
    ("headers", "milliseconds"),
    [
        ({"retry_after": "120"}, 120_000),
        ({"retry_after": " 0 "}, 0),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": NOW}, 30_000),
        ({"retry_after": "Wed, 21 Oct 2015 07:00:00 GMT", "date": NOW}, 0),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:30 GMT"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "1.5"}, None),
        ({"retry_after": "9" * 5_000}, None),
        ({"retry_after": "²"}, None),
        ({}, None),
    ],
)
def test_retry_after_counts_from_the_answers_own_date(
    headers: dict[str, str], milliseconds: int | None
) -> None:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    assert retry_after_ms(AgentAnswer(status=503, headers=given, body=b"")) == milliseconds


@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "gzip, identity"])
def test_a_compressed_answer_is_not_read(encoding: str) -> None:
    failed = failure_without_body(answer(200, content_encoding=encoding))
    assert failed is not None
    assert failed.error.code == "agent_answer_compressed"


@pytest.mark.parametrize("encoding", ["identity", "", "Identity"])
def test_identity_is_no_compression(encoding: str) -> None:
    assert failure_without_body(answer(200, content_encoding=encoding)) is None


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_names_its_target(status: int) -> None:
    failed = failure_without_body(answer(status, location="http://elsewhere/"))
    assert failed is not None
    assert failed.error.code == "agent_redirected"
    assert "http://elsewhere/" in failed.error.message


def test_a_redirect_may_lack_its_target() -> None:
    failed = failure_without_body(answer(302))
    assert failed is not None
    assert "does not specify" in failed.error.message


@pytest.mark.parametrize(
    ("status", "other"), [(404, True), (405, True), (501, True), (401, False), (503, False)]
)
def test_some_statuses_prove_that_the_agent_speaks_another_dialect(status: int, *, other: bool) -> None:
    outcome = SimpleA2AAdapter().decode(answer(status, b"no"), AgentTask(task_id="t"))
    assert isinstance(outcome, Failed)
    assert outcome.other_dialect is other


def test_an_excerpt_is_short_and_has_no_markup_or_control_characters() -> None:
    body = b"<html><script>alert(1)</script><h1>Not\n\n Found</h1>\x1b[31m\xff" + b"x" * 10_000
    text = excerpt(body)
    assert text.startswith("Not Found")
    assert "alert" not in text
    assert "\x1b" not in text
    assert len(text) <= 201
