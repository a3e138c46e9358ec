"""The dialects over JSON-RPC: their methods and formats, and how strictly each one is checked."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.agents.check_reports import DEFAULT_SAMPLE, CheckSample, Level
from trunkline.checker.check_plan import CheckPlan
from trunkline.checker.exchanges import ProbeRequest
from trunkline.checker.plans import jsonrpc_envelope, message_results, step_call
from trunkline.checker.plans.input_forms import InputForms
from trunkline.checker.plans.jsonrpc_envelope import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    NO_METHOD,
    NO_TASK,
    RpcDialect,
)
from trunkline.checker.plans.message_results import MessageFormat
from trunkline.jsontypes import Json, JsonObject
from trunkline.protocols import ProtocolAdapter, ProtocolTranslationError

_BY_KIND = {"text": "text", "data": "data", "file": "file"}
_CONTENTS = ("text", "data", "raw", "url")
_STATES = (
    "submitted",
    "working",
    "completed",
    "input-required",
    "auth-required",
    "canceled",
    "failed",
    "rejected",
)

# Not required by the dialect, but useful. Among them is how an agent rejects requests that Trunkline never sends.
_RECOMMENDED: Mapping[str, Level] = dict.fromkeys(
    (
        "batch-answered",
        "numeric-id",
        "accepts-charset",
        "error-no-internals",
        "repeated-message",
        "one-of-both",
        "parse-error-id",
        "parse-error",
        "object-required",
        "params-checked",
        "refusals-whole",
    ),
    "recommended",
)
# A2A servers reject unusual requests in different ways, which does no harm.
_UNSPECIFIED: Mapping[str, Level] = {
    **_RECOMMENDED,
    **dict.fromkeys(
        (
            "method-checked",
            "version-checked",
            "method-required",
            "internal-error",
            "result-artifacts",
        ),
        "recommended",
    ),
}
_BAD_V03: tuple[Json, ...] = (
    None,
    {},
    {"message": "no message"},
    {"message": {"role": "user", "messageId": "check"}},
    {"message": {"role": "user", "messageId": "check", "parts": "no list"}},
    {"message": {"role": "user", "messageId": "check", "parts": []}},
    {"message": {"role": "user", "messageId": "check", "parts": [42]}},
    {"message": {"role": "user", "messageId": "check", "parts": [{"kind": "text"}]}},
)
# Some servers accept any message and start to work.
_BAD_A2A_V03 = _BAD_V03[:3]
_BAD_V1: tuple[Json, ...] = (
    None,
    {},
    {"message": "no message"},
)
_A2A_CODES = frozenset({INVALID_PARAMS, INVALID_REQUEST})


def _plain_message(message_id: str, text: str) -> JsonObject:
    return {"role": "user", "messageId": message_id, "parts": [{"kind": "text", "text": text}]}


def _message_v03(message_id: str, text: str) -> JsonObject:
    return {"kind": "message", **_plain_message(message_id, text)}


def _message_v1(message_id: str, text: str) -> JsonObject:
    return {"role": "ROLE_USER", "messageId": message_id, "parts": [{"text": text}]}


def _whole(result: JsonObject) -> JsonObject | None:
    return result


def _nothing(result: JsonObject) -> JsonObject | None:
    del result  # agents of this dialect answer only with tasks
    return None


def _task_v03(result: JsonObject) -> JsonObject | None:
    return result if result.get("kind") == "task" else None


def _direct_v03(result: JsonObject) -> JsonObject | None:
    return result if result.get("kind") == "message" else None


def _task_v1(result: JsonObject) -> JsonObject | None:
    task = result.get("task")
    return task if isinstance(task, dict) else None


def _direct_v1(result: JsonObject) -> JsonObject | None:
    message = result.get("message")
    return message if isinstance(message, dict) else None


def _defect_by_kind(part: JsonObject) -> str | None:
    kind = part.get("kind")
    if kind is None:
        return "is missing 'kind'"
    content = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if content is None:
        return f"has the kind {kind!r}"
    if content not in part or (content == "text" and not isinstance(part["text"], str)):
        return f"is missing '{content}'"
    return None


def _defect_by_content(part: JsonObject) -> str | None:
    return None if any(name in part for name in _CONTENTS) else "has none of text, data, raw and url"


_JSONRPC_2_0 = MessageFormat(
    message=_plain_message,
    task=_whole,
    direct=_nothing,
    completed="completed",
    states=frozenset({"submitted", "working"}),
    user="user",
    agent="agent",
    defect=_defect_by_kind,
    requires_all_fields=True,
)
_V03 = MessageFormat(
    message=_message_v03,
    task=_task_v03,
    direct=_direct_v03,
    completed="completed",
    states=frozenset(_STATES),
    user="user",
    agent="agent",
    defect=_defect_by_kind,
    requires_all_fields=False,
)
_V1 = MessageFormat(
    message=_message_v1,
    task=_task_v1,
    direct=_direct_v1,
    completed="TASK_STATE_COMPLETED",
    states=frozenset(f"TASK_STATE_{state.replace('-', '_').upper()}" for state in _STATES),
    user="ROLE_USER",
    agent="ROLE_AGENT",
    defect=_defect_by_content,
    requires_all_fields=False,
)
_HEADERS_V1 = {"A2A-Version": "1.0"}


def _jsonrpc_2_0(send: str) -> RpcDialect:
    return RpcDialect(
        protocol="jsonrpc-2.0",
        send=send,
        get="tasks/get",
        bad_params=_BAD_V03,
        task_codes=frozenset({NO_TASK, NO_METHOD}),
        levels={**_RECOMMENDED, "unknown-task": "recommended"},
    )


_RPC_DIALECTS: Mapping[str, tuple[RpcDialect, MessageFormat]] = {
    **{
        name: (
            RpcDialect(
                protocol=name,
                send="message/send",
                get="tasks/get",
                bad_params=_BAD_A2A_V03,
                params_codes=_A2A_CODES,
                levels=_UNSPECIFIED,
            ),
            _V03,
        )
        for name in ("a2a-0.2", "a2a-0.3")
    },
    "a2a-1.0": (
        RpcDialect(
            protocol="a2a-1.0",
            send="SendMessage",
            headers=_HEADERS_V1,
            get="GetTask",
            bad_params=_BAD_V1,
            params_codes=_A2A_CODES,
            levels=_UNSPECIFIED,
        ),
        _V1,
    ),
}
_V01 = "a2a-0.1"
# For these, only JSON-RPC itself is checked, and whether a step can use them. Which input they accept is known only
# from the caller.
_ENVELOPE_ALONE: Mapping[str, RpcDialect] = {
    _V01: RpcDialect(protocol=_V01, send="tasks/send", get="tasks/get", levels=_UNSPECIFIED),
    "jsonrpc-call": RpcDialect(protocol="jsonrpc-call", send="", levels=_RECOMMENDED),
}
RPC_PROTOCOLS = ("jsonrpc-2.0", *_ENVELOPE_ALONE, *_RPC_DIALECTS)


def rpc_plan(
    protocol: str, adapter: ProtocolAdapter, config: JsonObject, nonce: str, sample: CheckSample
) -> CheckPlan | None:
    """None: the dialect does not use JSON-RPC."""
    known = _dialect_of(protocol, config)
    if known is not None:
        dialect, message_format = known
        forms = InputForms(protocol, config, nonce, sample)
        return CheckPlan(
            probes=[
                *jsonrpc_envelope.probes(dialect, nonce),
                *message_results.probes(dialect, message_format, nonce, adapter, sample),
                *forms.probes(),
            ],
            checks=[
                *jsonrpc_envelope.planned_checks(dialect, message_results.MESSAGES),
                *message_results.planned_checks(dialect, message_format, nonce, adapter, sample),
                *forms.planned_checks(),
            ],
            speaks=jsonrpc_envelope.is_rpc,
            levels=dialect.levels,
            follow_up=step_call.step_poll(adapter, nonce, sample),
            input_modes=forms.understood,
        )
    if protocol == "jsonrpc-2.0":
        alone: RpcDialect | None = RpcDialect(protocol=protocol, send="", levels=_RECOMMENDED)
    else:
        alone = _ENVELOPE_ALONE.get(protocol)
    if alone is None:
        return None
    step = None if sample == DEFAULT_SAMPLE and protocol != _V01 else _step(adapter, nonce, sample)
    return CheckPlan(
        probes=[*jsonrpc_envelope.probes(alone, nonce), *([] if step is None else [step])],
        checks=[*jsonrpc_envelope.planned_checks(alone), step_call.step_check(adapter, nonce, sample)],
        speaks=jsonrpc_envelope.is_rpc,
        levels=alone.levels,
        follow_up=step_call.step_poll(adapter, nonce, sample),
    )


def _step(adapter: ProtocolAdapter, nonce: str, sample: CheckSample) -> ProbeRequest | None:
    """None: the agent's profile does not accept the sample as input."""
    try:
        step = adapter.encode(step_call.step_task(nonce, sample))
    except ProtocolTranslationError:
        return None
    return ProbeRequest(name="step", body=step.body, headers=step.headers, path=step.path, active=True)


def _dialect_of(protocol: str, config: JsonObject) -> tuple[RpcDialect, MessageFormat] | None:
    if protocol != "jsonrpc-2.0":
        return _RPC_DIALECTS.get(protocol)
    if "profile" in config or config.get("params", "message") != "message":
        return None
    method = config.get("method", "message/send")
    return _jsonrpc_2_0(method if isinstance(method, str) else "message/send"), _JSONRPC_2_0
