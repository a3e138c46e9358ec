"""
What both bindings of A2A 1.0 have in common: configuration, decoding, streams, and finding a task again.

`protocol_config`: input_mode, output_mode, tenant, for an address that serves several, and batch, which only
JSON-RPC has.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NoReturn

import msgspec

from trunkline.errors import Finding
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask
from trunkline.protocols.a2a.common.outcome import outcome_of
from trunkline.protocols.a2a.v1.errors import TEXTS
from trunkline.protocols.a2a.v1.parsed_result import V1ParsedResult
from trunkline.protocols.a2a.v1.request import InputMode, context_id, message_params
from trunkline.protocols.a2a.v1.stream import V1StreamReader
from trunkline.protocols.a2a.v1.task_lookup import TaskNotIdentifiable, find_task
from trunkline.protocols.answer_json import NotJson
from trunkline.protocols.base import (
    DEFAULT_SEND_OPTIONS,
    AgentAnswer,
    AgentRequest,
    Failed,
    Outcome,
    ProtocolAdapter,
    ProtocolTranslationError,
    SendOptions,
    TaskStreamReader,
)
from trunkline.protocols.config import ProtocolOption, TextOption, check_config
from trunkline.protocols.http_failures import failure_without_body, http_failure
from trunkline.protocols.outcomes import to_internal_format
from trunkline.protocols.outputs import OutputMode, output_mode_for

OPTIONS: dict[str, ProtocolOption] = {
    "input_mode": TextOption(default="text", choices=("text", "json", "data")),
    "output_mode": TextOption(default="full", choices=("full", "data")),
    "tenant": TextOption(default=""),
}
# Without it a server takes the request for one of 0.3.
HEADERS = {"A2A-Version": "1.0"}
# As many as a server gives at once.
LIST_PAGE = 100


class A2A10AdapterBase(ProtocolAdapter):
    """A2A 1.0, but for how a request is addressed and an answer wrapped."""

    known_options: ClassVar[Mapping[str, ProtocolOption]] = OPTIONS
    # The version is a header.
    needs_http = True

    def __init__(
        self, *, input_mode: InputMode = "text", output_mode: OutputMode = "full", tenant: str | None = None
    ) -> None:
        self.input_mode: InputMode = input_mode
        self.output_mode: OutputMode = output_mode
        self.tenant = tenant or None

    @classmethod
    def validate_config(cls, config: Mapping[str, Json]) -> list[Finding]:
        return check_config(cls.known_options, config)

    @abstractmethod
    def parse_result(self, body: bytes, task: AgentTask) -> V1ParsedResult | Failed:
        """What an answer says; raises `NotJson` or `ProtocolTranslationError`."""

    @abstractmethod
    def parse_task_list(self, body: bytes, task: AgentTask) -> Json | Failed:
        """The list of tasks in an answer; raises as `parse_result` does."""

    @abstractmethod
    def whole_result(self, body: bytes) -> bytes:
        """All of an answer's result, as JSON."""

    def params(self, task: AgentTask, options: SendOptions = DEFAULT_SEND_OPTIONS) -> JsonObject:
        return message_params(task, self.input_mode, options, self.get_protocol_name())

    def from_agent_response(self, response: JsonObject, task_id: str) -> JsonObject:
        return to_internal_format(self.decode_body(encode(response), AgentTask(task_id=task_id)), task_id)

    def decode_body(self, body: bytes, task: AgentTask) -> Outcome:
        return self.outcome_of_result(self.parse_result(body, task), body, task)

    def outcome_of_result(self, opened: V1ParsedResult | Failed, body: bytes, task: AgentTask) -> Outcome:
        if isinstance(opened, Failed):
            return opened
        keep_context(opened, task)
        mode = output_mode_for(task, self.output_mode)
        return outcome_of(opened, lambda: self.whole_result(body), mode, TEXTS)

    def read_stream(self, task: AgentTask) -> TaskStreamReader:
        def open_event(data: bytes) -> V1ParsedResult | Failed:
            try:
                opened = self.parse_result(data, task)
            except (NotJson, ProtocolTranslationError) as exc:
                raise self._malformed(exc, data) from exc
            if isinstance(opened, V1ParsedResult):
                keep_context(opened, task)
            return opened

        mode = output_mode_for(task, self.output_mode)
        return V1StreamReader(open_event, self.whole_result, mode, self.get_protocol_name())

    def decode_find(self, answer: AgentAnswer, task: AgentTask) -> str | None:
        """The remote id of our task; raises `ProtocolTranslationError` when the agent's answer leaves it open."""
        unreadable = failure_without_body(answer)
        if unreadable is not None:
            self._raise_not_identifiable(unreadable, answer)
        try:
            listed = self.parse_task_list(answer.body, task)
            if isinstance(listed, Failed):
                self._raise_not_identifiable(listed, answer)
            return find_task(listed, task)
        except (NotJson, TaskNotIdentifiable) as exc:
            if answer.status >= 400:
                self._raise_not_identifiable(http_failure(answer, request_size=0), answer)
            raise ProtocolTranslationError(
                str(exc), self.get_protocol_name(), "response", answer.body
            ) from exc

    def _raise_not_identifiable(self, failed: Failed, answer: AgentAnswer) -> NoReturn:
        raise ProtocolTranslationError(
            failed.error.message,
            self.get_protocol_name(),
            "response",
            answer.body,
            code=failed.error.code,
            fix=failed.error.fix,
        )


def keep_context(reading: V1ParsedResult, task: AgentTask) -> None:
    """A message that names no context is in the one that it answers: an agent with another must name it."""
    if reading.form == "message" and reading.context_id is None:
        reading.context_id = context_id(task)


def with_headers(request: AgentRequest, path: str = "") -> AgentRequest:
    return msgspec.structs.replace(request, path=path, headers=HEADERS)
