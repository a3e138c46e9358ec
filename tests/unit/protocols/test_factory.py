"""Which dialects there are, how third parties add theirs, and what a `protocol_config` may hold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import (
    AgentAnswer,
    Failed,
    JsonRpc2Adapter,
    ProtocolAdapter,
    ProtocolAdapterFactory,
    ProtocolTranslationError,
    SimpleA2AAdapter,
    Succeeded,
    UnsupportedProtocol,
    validate_protocol_config,
)
from trunkline.protocols.factory import ConfigValidator

# Before the tests put their own ones in.
BUILT_IN = {
    name: ProtocolAdapterFactory.adapter_class(name) for name in ProtocolAdapterFactory.supported_protocols()
}
ALL_KEYS = ("output_mode", "method", "poll_method", "batch", "version", "input_mode", "params", "tenant")
JSON_RPC = {
    name for name in BUILT_IN if name.startswith("jsonrpc") or (name.startswith("a2a") and "http" not in name)
}


class ShoutingAdapter(ProtocolAdapter):
    """A third party's dialect with only the three methods that every adapter must have."""

    def __init__(self, mark: str = "!") -> None:
        self.mark = mark

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        return {"SHOUT": f"{task.input_data}{self.mark}"}

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return {
            "task_id": task_id,
            "status": response["OUTCOME"],
            "output": response.get("ECHO"),
            "error": "No",
        }

    def get_protocol_name(self) -> str:
        return "shouting"


class StrictAdapter(ShoutingAdapter):
    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        return [Finding(path=key, message="not here") for key in config]


@pytest.fixture(autouse=True)
def registered_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"simple-a2a": SimpleA2AAdapter, "jsonrpc-2.0": JsonRpc2Adapter}
    monkeypatch.setattr(ProtocolAdapterFactory, "_adapters", known)
    ProtocolAdapterFactory.register_adapter("shouting", ShoutingAdapter)
    ProtocolAdapterFactory.register_adapter("strict", StrictAdapter)


def decoded(adapter: ProtocolAdapter, body: Json, status: int = 200) -> object:
    return adapter.decode(AgentAnswer(status=status, headers={}, body=encode(body)), AgentTask(task_id="t"))


@pytest.mark.parametrize("protocol", BUILT_IN)
def test_every_protocol_has_an_adapter_that_bears_its_name(protocol: str) -> None:
    assert BUILT_IN[protocol].from_config({}).get_protocol_name() == protocol


@pytest.mark.parametrize("protocol", sorted(JSON_RPC))
def test_every_dialect_in_json_rpc_takes_batches(protocol: str) -> None:
    validator = BUILT_IN[protocol]
    assert isinstance(validator, ConfigValidator)
    assert validator.validate_config({"batch": {"max": 2, "wait_ms": 0}}) == []


def test_the_configuration_reaches_the_adapter() -> None:
    adapter = ProtocolAdapterFactory.create_adapter(
        "jsonrpc-2.0",
        {"method": "tasks/send", "input_mode": "json", "output_mode": "data", "params": "input"},
    )
    assert isinstance(adapter, JsonRpc2Adapter)
    assert (adapter.method, adapter.version) == ("tasks/send", "2.0")
    assert (adapter.input_mode, adapter.output_mode, adapter.params) == ("json", "data", "input")


def test_keys_of_another_dialect_do_no_harm_once_auto_is_decided() -> None:
    adapter = ProtocolAdapterFactory.create_adapter("simple-a2a", {"method": "x", "output_mode": "data"})
    assert isinstance(adapter, SimpleA2AAdapter)
    assert adapter.output_mode == "data"


@pytest.mark.parametrize("protocol", ["grpc", "", "auto", "SIMPLE-A2A"])
def test_an_unknown_protocol_is_refused_with_the_known_ones(protocol: str) -> None:
    message = (
        f"Unsupported protocol: {protocol}. Supported protocols: simple-a2a, jsonrpc-2.0, shouting, strict"
    )
    with pytest.raises(UnsupportedProtocol) as raised:
        ProtocolAdapterFactory.create_adapter(protocol)
    assert str(raised.value) == message
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, Invalid)


def test_auto_cannot_be_taken_as_a_name() -> None:
    with pytest.raises(ValueError, match="auto"):
        ProtocolAdapterFactory.register_adapter("auto", ShoutingAdapter)


def test_three_methods_make_a_dialect() -> None:
    adapter = ProtocolAdapterFactory.create_adapter("shouting", {"mark": "?", "unknown": 1})
    task = AgentTask(task_id="t", input_data="hey")
    assert decode(adapter.encode(task).body) == {"SHOUT": "hey?"}
    succeeded = decoded(adapter, {"OUTCOME": "success", "ECHO": {"a": 1}})
    assert isinstance(succeeded, Succeeded)
    assert decode(succeeded.output) == {"a": 1}
    failed = decoded(adapter, {"OUTCOME": "error"}, 500)
    assert isinstance(failed, Failed)
    assert (failed.error.code, failed.error.message, failed.error.http_status) == (
        "agent_reported_error",
        "No",
        500,
    )


@pytest.mark.parametrize("body", [{}, {"OUTCOME": "maybe"}, [], "x", None])
def test_an_answer_that_a_third_party_cannot_read_is_malformed(body: Json) -> None:
    adapter = ProtocolAdapterFactory.create_adapter("shouting")
    with pytest.raises(ProtocolTranslationError, match="malformed shouting response: ") as raised:
        decoded(adapter, body)
    assert raised.value.code == "agent_answer_malformed"
    outcome = decoded(adapter, body, 502)
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "agent_http_error"


@pytest.mark.parametrize(
    ("protocol", "config"),
    [
        ("jsonrpc-2.0", None),
        ("jsonrpc-2.0", {}),
        (
            "jsonrpc-2.0",
            {"method": "message/send", "version": "2.0", "input_mode": "data", "params": "message"},
        ),
        ("simple-a2a", {"output_mode": "full"}),
        ("auto", {"method": "x", "output_mode": "data"}),
        ("auto", {"poll_method": "x", "input_mode": "json", "batch": {"max": 100, "wait_ms": 1000}}),
        ("jsonrpc-2.0", {"batch": {"max": 2}}),
        ("shouting", {"anything": [1]}),
    ],
)
def test_a_good_configuration_has_no_findings(protocol: str, config: Json) -> None:
    assert validate_protocol_config(protocol, config) == []


@pytest.mark.parametrize(
    ("protocol", "config", "path", "message"),
    [
        (
            "jsonrpc-2.0",
            {"version": "1.0"},
            "protocol_config.version",
            "'version' must be '2.0', not \"1.0\"",
        ),
        ("jsonrpc-2.0", {"version": 2.0}, "protocol_config.version", "'version' must be '2.0', not 2.0"),
        (
            "jsonrpc-2.0",
            {"method": " "},
            "protocol_config.method",
            "'method' must be a non-empty string",
        ),
        (
            "jsonrpc-2.0",
            {"method": None},
            "protocol_config.method",
            "'method' must be a non-empty string",
        ),
        (
            "jsonrpc-2.0",
            {"input_mode": "xml"},
            "protocol_config.input_mode",
            "'input_mode' must be 'text' or 'json' or 'data', not \"xml\"",
        ),
        (
            "jsonrpc-2.0",
            {"input_mod": "json"},
            "protocol_config.input_mod",
            "'input_mod' is not supported; did you mean 'input_mode'?",
        ),
        (
            "auto",
            {"zzz": 1},
            "protocol_config.zzz",
            f"'zzz' is not supported; supported here: {', '.join(ALL_KEYS)}",
        ),
        (
            "jsonrpc-2.0",
            {"batch": 5},
            "protocol_config.batch",
            "'batch' must be an object with max and wait_ms, not 5",
        ),
        (
            "jsonrpc-2.0",
            {"batch": {"wait_ms": 5}},
            "protocol_config.batch",
            "'batch' must have max, from 2 to 100",
        ),
        (
            "auto",
            {"batch": {"max": 1}},
            "protocol_config.batch",
            "'batch' must have a whole number from 2 to 100 as max, not 1",
        ),
        (
            "auto",
            {"batch": {"max": True}},
            "protocol_config.batch",
            "'batch' must have a whole number from 2 to 100 as max, not true",
        ),
        (
            "auto",
            {"batch": {"max": 2, "wait_ms": 1001}},
            "protocol_config.batch",
            "'batch' must have a whole number from 0 to 1000 as wait_ms, not 1001",
        ),
        (
            "auto",
            {"batch": {"max": 2, "delay": 1}},
            "protocol_config.batch",
            "'batch' has an unknown field delay; supported here: max, wait_ms",
        ),
        (
            "simple-a2a",
            {"zzz": 1},
            "protocol_config.zzz",
            "'zzz' is not supported; supported here: output_mode",
        ),
        (
            "auto",
            {"params": "both"},
            "protocol_config.params",
            "'params' must be 'message' or 'input', not \"both\"",
        ),
        ("jsonrpc-2.0", [], "protocol_config", "protocol_config must be an object"),
        ("strict", {"x": 1}, "x", "not here"),
    ],
)
def test_a_bad_configuration_is_explained(protocol: str, config: Json, path: str, message: str) -> None:
    assert validate_protocol_config(protocol, config) == [Finding(path=path, message=message)]


def test_the_configuration_of_an_unknown_protocol_cannot_be_checked() -> None:
    with pytest.raises(UnsupportedProtocol):
        validate_protocol_config("grpc", {})
