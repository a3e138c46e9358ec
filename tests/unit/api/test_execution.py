"""What a request to execute says, read by hand."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from trunkline.api.execution import MAX_VERSION, MAX_WAIT_SECONDS, Execution, read_execution
from trunkline.errors import Invalid


def request_of(query: str = "", key: str | None = None) -> Request:
    headers = [] if key is None else [(b"idempotency-key", key.encode("latin-1"))]
    return Request(
        {"type": "http", "method": "POST", "path": "/", "query_string": query.encode(), "headers": headers}
    )


def test_nothing_said_means_the_latest_version_at_once() -> None:
    assert read_execution(request_of()) == Execution()


def test_version_wait_and_key_are_read() -> None:
    assert read_execution(request_of("version=3&wait=2.5", "order 7")) == Execution(3, 2.5, "order 7")


def test_a_longer_wait_is_cut() -> None:
    assert read_execution(request_of("wait=1e9")).wait == MAX_WAIT_SECONDS


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("version=0", "query.version"),
        ("version=-1", "query.version"),
        ("version=1.0", "query.version"),
        ("version=", "query.version"),
        ("version=%C2%B2", "query.version"),
        (f"version={MAX_VERSION + 1}", "query.version"),
        ("wait=-1", "query.wait"),
        ("wait=", "query.wait"),
        ("wait=nan", "query.wait"),
        ("wait=inf", "query.wait"),
        ("wait=soon", "query.wait"),
    ],
)
def test_a_wrong_query_is_refused_with_its_place(query: str, path: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_execution(request_of(query))
    assert [finding.path for finding in refused.value.findings] == [path]


@pytest.mark.parametrize("key", ["", "x" * 256, "ä", "a\tb"])
def test_an_idempotency_key_is_printable_and_short(key: str) -> None:
    with pytest.raises(Invalid, match="idempotency-key"):
        read_execution(request_of(key=key))
