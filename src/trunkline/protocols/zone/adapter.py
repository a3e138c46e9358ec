"""
A zone as its caller sees it: `jsonrpc-2.0` with a `profile` in the agent's `protocol_config`, and the link's requests.

    request  {"jsonrpc": "2.0", "id": "<a UUID made of the task id>", "method": "execute_task",
              "params": <the step's input, as the profile wants it>}
    later    {"jsonrpc": "2.0", "id": "<one for each poll>", "method": "get_task_result", "params": {"task_id": "…"}}
    answer   one result or one error: answers.py

A zone runs an id once, so the same message may be sent again whenever its answer was lost. Both requests carry
`X-Zone-Session`, the id of the first: where many machines serve one zone, the question has to reach the one that has
the task. Nothing in the contract stops work that has begun.

`protocol_config`: profile (a name, or a JSON Schema), method, poll_method and output_mode. Params that do not fit the
profile are not sent; `correlation_id` is put in where the profile knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never
from uuid import UUID, uuid5

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols.base import (
    AgentAnswer,
    AgentRequest,
    Failed,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    SendOptions,
    Succeeded,
    Working,
)
from trunkline.protocols.config import ProfileOption, ProtocolOption, TextOption, UnusableOption, check_config
from trunkline.protocols.json_rpc.envelope import VERSION, rpc_request
from trunkline.protocols.outcomes import DEFAULT_SEND_OPTIONS, to_internal_format
from trunkline.protocols.outputs import OutputMode, StepOutput, encode_output, output_mode_for
from trunkline.protocols.zone.answers import (
    PROTOCOL,
    ZoneAccepted,
    ZoneAnswer,
    ZoneFailed,
    ZoneSucceeded,
    is_unknown_task,
    read_answer,
    read_http_answer,
)
from trunkline.protocols.zone.params_profiles import ParamsProfile, find_profile

METHOD = "execute_task"
POLL_METHOD = "get_task_result"
SESSION_HEADER = "X-Zone-Session"
OPTIONS: dict[str, ProtocolOption] = {
    "profile": ProfileOption(),
    "method": TextOption(default=METHOD),
    "poll_method": TextOption(default=POLL_METHOD),
    "output_mode": TextOption(default="full", choices=("full", "data")),
    # With a profile these two are redundant, and do no harm.
    "version": TextOption(default=VERSION, choices=(VERSION,)),
    "params": TextOption(default="input", choices=("input",)),
    "input_mode": UnusableOption(
        reason="cannot be combined with 'profile': the input itself becomes the params"
    ),
    "batch": UnusableOption(reason="cannot be combined with 'profile': zones do not accept batches"),
}

# Of the ids that are made of a task's.
_IDS = UUID("5d0c3f0e-0d5e-5b0c-9c53-6f2b8a6c7e11")


def execute_request(id_: str, method: str, params: Json) -> AgentRequest:
    return AgentRequest(body=encode(rpc_request(method, id_, params)), headers={SESSION_HEADER: id_})


def poll_request(id_: str, method: str, task_id: str, session: str | None) -> AgentRequest:
    """A question about accepted work; `session` is the id of the request that was accepted, where it is known."""
    headers = {} if session is None else {SESSION_HEADER: session}
    return AgentRequest(body=encode(rpc_request(method, id_, {"task_id": task_id})), headers=headers)


def with_correlation_id(params: Json, correlation_id: str, profile: ParamsProfile) -> Json:
    """The params with the correlation id, where the profile knows it and they have none."""
    if not correlation_id or not isinstance(params, dict) or not profile.knows("correlation_id"):
        return params
    return params if "correlation_id" in params else {**params, "correlation_id": correlation_id}


def params_problem(params: Json, profile: ParamsProfile) -> str | None:
    """Why the params are not sent, in words without any value of theirs; None: they fit the profile."""
    findings = profile.check(params)
    if not findings:
        return None
    said = "; ".join(f"{finding.path} {finding.message}".strip() for finding in findings)
    return f"The input does not match the profile {profile.name}: {said}"


class ZoneAdapter(ProtocolAdapter):
    """The contract between two zones, for agents that are zones."""

    def __init__(
        self,
        profile: str | JsonObject = "any",
        method: str = METHOD,
        poll_method: str = POLL_METHOD,
        *,
        output_mode: OutputMode = "full",
    ) -> None:
        """Raises `InvalidProfile`."""
        self.profile = find_profile(profile)
        self.method = method
        self.poll_method = poll_method
        self.output_mode: OutputMode = output_mode

    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        findings = check_config(OPTIONS, config)
        for key in ("method", "poll_method"):
            name = config.get(key)
            if isinstance(name, str) and name.startswith("rpc."):
                message = f"'{key}' begins with 'rpc.', which JSON-RPC reserves"
                findings.append(Finding(path=f"protocol_config.{key}", message=message))
        if config.get("method", METHOD) == config.get("poll_method", POLL_METHOD):
            message = "'poll_method' must differ from 'method': it queries a task and must not start one"
            findings.append(Finding(path="protocol_config.poll_method", message=message))
        return findings

    def get_protocol_name(self) -> str:
        return PROTOCOL

    def malformed_symptom(self) -> str:
        return "malformed JSON-RPC response"

    def to_agent_request(self, task: AgentTask) -> JsonObject:
        params = with_correlation_id(task.input_data, task.correlation_id, self.profile)
        wrong = params_problem(params, self.profile)
        if wrong is not None:
            raise ProtocolTranslationError(wrong, PROTOCOL, "request", code="request_not_encodable")
        return rpc_request(self.method, _send_id(task), params)

    def encode(self, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> AgentRequest:
        request = super().encode(task, options)
        return AgentRequest(body=request.body, headers={SESSION_HEADER: _send_id(task)})

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return to_internal_format(self.decode_body(encode(response), AgentTask(task_id=task_id)), task_id)

    def decode(self, answer: AgentAnswer, task: AgentTask) -> Outcome:
        # Not by `encode`: what was sent had its secrets in it, and this task may only name them.
        size = len(encode(rpc_request(self.method, _send_id(task), task.input_data)))
        return self._outcome(read_http_answer(answer, _ids(task), request_size=size), task)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        return self._outcome(read_answer(body, _ids(task)), task)

    def _outcome(self, answer: ZoneAnswer, task: AgentTask) -> Outcome:
        match answer:
            case ZoneSucceeded():
                output = StepOutput(text=answer.text, data=answer.result)
                return Succeeded(output=encode_output(output, output_mode_for(task, self.output_mode), []))
            case ZoneAccepted():
                return Working(remote_task_id=answer.task_id, state="accepted")
            case ZoneFailed():
                # The work itself may have failed in the same words.
                unknown = answer.id == _poll_id(task) and is_unknown_task(answer.error)
                return Failed(error=answer.error, warnings=answer.notes, task_unknown=unknown)
            case _:
                assert_never(answer)

    def encode_poll(self, task: AgentTask, remote_task_id: str) -> AgentRequest | None:
        return poll_request(_poll_id(task), self.poll_method, remote_task_id, _send_id(task))


def _ids(task: AgentTask) -> tuple[str, str]:
    return _send_id(task), _poll_id(task)


def _send_id(task: AgentTask) -> str:
    return str(uuid5(_IDS, task.task_id))


def _poll_id(task: AgentTask) -> str:
    # Each poll has an id of its own, and the same poll again the same one.
    return str(uuid5(_IDS, f"{task.task_id}/poll/{task.polls}"))
