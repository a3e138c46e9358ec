"""The parameters of a request, read into the struct that declares them."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from trunkline.api.parameters import MAX_VERSION, ParameterReader
from trunkline.api.routes.inbox import INBOX, UploadParameters
from trunkline.api.routes.run_control import EXECUTE, ExecuteParameters
from trunkline.api.routes.runs import RUNS, ListRunsParameters
from trunkline.errors import Invalid

EXECUTE_READER = ParameterReader(ExecuteParameters, EXECUTE)
LIST_READER = ParameterReader(ListRunsParameters, RUNS)


def request_of(query: str = "", key: str | None = None) -> Request:
    headers = [] if key is None else [(b"idempotency-key", key.encode("latin-1"))]
    return Request(
        {
            "type": "http",
            "method": "POST",
            "path": "/",
            "path_params": {"workflow": "w"},
            "query_string": query.encode(),
            "headers": headers,
        }
    )


def test_nothing_said_means_the_latest_version_at_once() -> None:
    assert EXECUTE_READER.read(request_of()) == ExecuteParameters(workflow="w")


def test_version_wait_and_key_are_read() -> None:
    read = EXECUTE_READER.read(request_of("version=3&wait=2.5", "order 7"))
    assert read == ExecuteParameters(workflow="w", version=3, wait=2.5, idempotency_key="order 7")


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
        EXECUTE_READER.read(request_of(query))
    assert [finding.path for finding in refused.value.findings] == [path]


@pytest.mark.parametrize("key", ["", "x" * 256, "ä", "a\tb"])
def test_an_idempotency_key_is_printable_and_short(key: str) -> None:
    with pytest.raises(Invalid, match="idempotency-key"):
        EXECUTE_READER.read(request_of(key=key))


def test_all_wrong_parameters_are_named() -> None:
    with pytest.raises(Invalid) as refused:
        LIST_READER.read(request_of("limit=0&status=RUNNING&status=DONE&since=2026-01-01&q=&payloads=maybe"))
    assert [finding.path for finding in refused.value.findings] == [
        "query.limit",
        "query.payloads",
        "query.status.1",
        "query.q",
        "query.since",
    ]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("False", False), ("yes", True)])
def test_a_flag_can_be_written_in_several_ways(text: str, value: bool) -> None:
    assert LIST_READER.read(request_of(f"payloads={text}")).payloads is value


def test_the_last_of_several_values_counts() -> None:
    assert LIST_READER.read(request_of("limit=1&limit=2")).limit == 2


@pytest.mark.parametrize("text", ["null", "2026-W10-1T00:00:00Z", "1767225600", "2026-03-01T12:00:00"])
def test_a_time_is_written_with_its_offset(text: str) -> None:
    with pytest.raises(Invalid, match="offset"):
        LIST_READER.read(request_of(f"since={text}"))


def test_a_required_query_parameter_that_is_missing_is_named() -> None:
    reader = ParameterReader(UploadParameters, f"{INBOX}/{{item}}/files")
    request = request_of()
    request.scope["path_params"] = {"item": "i"}
    with pytest.raises(Invalid) as refused:
        reader.read(request)
    assert [(each.path, each.message) for each in refused.value.findings] == [("query.name", "is missing")]
