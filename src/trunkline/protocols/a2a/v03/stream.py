"""
A stream of an A2A 0.2 or 0.3 agent: each event is one JSON-RPC answer, whose result is one of

    {"kind": "status-update", "taskId", "contextId", "status": {"state", "message"}, "final": true}
    {"kind": "artifact-update", "taskId", "contextId", "artifact": {…}, "append": true, "lastChunk": true}
    {"kind": "task", …}  {"kind": "message", …}        and all that lenient_parsing.py knows of

A message that comes while a task works is not the end: some agents say their answer so, piece by piece under one
`messageId`. Folded, they are the Task that `message/send` would have answered with, and mean the same. A text that is
appended goes on where the last one ended.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask, Progress
from trunkline.protocols.a2a.common.outcome import agent_message
from trunkline.protocols.a2a.common.parsed_result import text_of
from trunkline.protocols.a2a.common.parts import shown_part
from trunkline.protocols.a2a.common.states import COMPLETED, PENDING, RECOGNIZED, canonical_state, is_user
from trunkline.protocols.a2a.v03.lenient_parsing import (
    list_in,
    parse_lenient_result,
    parts_in,
    string_in,
    unwrapped,
)
from trunkline.protocols.a2a.v03.model import V03Message, is_thought, parts_of, texts_in
from trunkline.protocols.a2a.v03.outcome import outcome_of_answer, parse_exact_answer
from trunkline.protocols.a2a.v03.parsed_result import V03ParsedResult
from trunkline.protocols.answer_json import NotJson
from trunkline.protocols.json_rpc.envelope import RpcError, RpcResult, parse_response
from trunkline.protocols.outcomes import (
    Outcome,
    ProtocolTranslationError,
    StreamUpdate,
    TaskStreamReader,
    Working,
)
from trunkline.protocols.outputs import OutputMode

# The states after which nothing comes: those that end a task, and those that wait for a person.
_END_STATES = RECOGNIZED - PENDING


class _PartialContent(msgspec.Struct):
    """An artifact or a message on its way: its parts as they came, one list for each event."""

    artifact: JsonObject
    parts: list[list[Json]]


class V03StreamReader(TaskStreamReader):
    """Reads one stream; `malformed` makes the error for an event that cannot be read."""

    def __init__(
        self,
        task: AgentTask,
        protocol: str,
        output_mode: OutputMode,
        malformed: Callable[[NotJson | ProtocolTranslationError, bytes], ProtocolTranslationError],
    ) -> None:
        self._task_id = task.task_id
        self._protocol = protocol
        self._output_mode: OutputMode = output_mode
        self._malformed = malformed
        self._remote_task_id = task.remote_task_id
        self._context_id = task.context_id
        # Everything but the artifacts.
        self._folded: JsonObject = {}
        self._artifacts: dict[str, _PartialContent] = {}
        # What the agent says while its task works, by the message's id.
        self._said: dict[str, _PartialContent] = {}
        self._direct: JsonObject | None = None
        # The outcome of a stream that has one event only.
        self._at_once: Outcome | None = None
        self._error: RpcError | None = None
        self._state: str | None = None
        # Something that is an answer, not only the news that there is one.
        self._has_content = False
        # A piece came that goes on with one which this stream has not brought.
        self._has_gap = False
        self._has_begun = False
        self._is_over = False

    def take(self, data: bytes) -> StreamUpdate:
        if self._is_over:
            return StreamUpdate(is_over=True)
        try:
            whole = None if self._has_begun else self._parse_completed_task(data)
            answer = whole or parse_response(data, self._task_id, self._protocol)
        except (NotJson, ProtocolTranslationError) as exc:
            raise self._malformed(exc, data) from exc
        match answer:
            case V03ParsedResult():
                self._at_once = outcome_of_answer(answer, data, self._output_mode, any_result=False)
                self._is_over = True
                return StreamUpdate(
                    remote_task_id=answer.remote_task_id, context_id=answer.context_id, is_over=True
                )
            case RpcError():
                self._error = answer
                self._is_over = True
                return StreamUpdate(is_over=True)
            case RpcResult(value=result):
                return self._take_result(result)

    def outcome(self) -> Outcome:
        if self._at_once is not None:
            return self._at_once
        if self._error is not None:
            return outcome_of_answer(self._error, b"", self._output_mode, any_result=False)
        if not self._has_begun:
            raise ProtocolTranslationError(
                "The stream ended before it reported a task", self._protocol, "response", b""
            )
        is_whole = self._has_content and not self._has_gap
        if self._state == COMPLETED and not is_whole and self._remote_task_id is not None:
            # What the agent has made is in its task, which can be asked for.
            return Working(remote_task_id=self._remote_task_id, state=COMPLETED, context_id=self._context_id)
        result = self._assembled_task() if self._direct is None else self._direct
        body = encode({"result": result})
        return outcome_of_answer(parse_lenient_result(result), body, self._output_mode, any_result=False)

    def _parse_completed_task(self, data: bytes) -> V03ParsedResult | None:
        """A completed task in its exact form, with what it has made: as an answer without a stream has it."""
        reading = parse_exact_answer(data, self._task_id, self._protocol)
        if reading is None or reading.state is None or canonical_state(reading.state) != COMPLETED:
            return None
        if not any(artifact.parts for artifact in reading.artifacts):
            return None
        # What the task had before would not be in it.
        is_same = reading.context_id is not None or self._context_id is None
        return reading if is_same and reading.remote_task_id is not None else None

    def _take_result(self, result: Json) -> StreamUpdate:
        reading = parse_lenient_result(result)
        body = unwrapped(result) if isinstance(result, dict) else {}
        self._has_begun |= reading.form != "other" or reading.reported_error is not None
        self._remote_task_id = reading.remote_task_id or self._remote_task_id
        self._context_id = reading.context_id or self._context_id
        progress = None
        if reading.form == "artifact-update":
            progress = self._take_artifact(body)
        elif reading.form == "message" and self._state in PENDING:
            progress = self._take_message(body)
        elif reading.form == "message" and reading.state is None:
            self._direct = body
            self._has_content = self._is_over = True
        else:
            progress = self._take_task(body, reading)
            if isinstance(result, dict) and reading.message is not None:
                self._folded["message"] = result["message"]
        self._keep_metadata(body)
        self._is_over = self._is_over or body.get("final") is True
        return StreamUpdate(
            remote_task_id=reading.remote_task_id,
            context_id=reading.context_id,
            progress=progress,
            is_over=self._is_over,
        )

    def _take_task(self, body: JsonObject, reading: V03ParsedResult) -> Progress | None:
        """A status, or a whole task: what it has replaces what was."""
        for name in ("status", "state", "history", "error"):
            if name in body:
                self._folded[name] = body[name]
        if isinstance(body.get("artifacts"), list):
            self._artifacts.clear()
            self._has_gap = False
            for item in list_in(body["artifacts"]):
                if isinstance(item, dict):
                    self._keep_artifact(item, item)
        if reading.state is None:
            return None
        self._state = canonical_state(reading.state)
        if self._state in _END_STATES:
            self._is_over = True
            self._has_content |= _is_whole(body) or _has_output(reading.status_message)
            return None
        text = text_of(agent_message(reading.status_message))
        others = _other_parts(_status_parts(body))
        return Progress(kind="status", text=text, parts=others) if text or others else None

    def _take_message(self, body: JsonObject) -> Progress | None:
        if is_user(body.get("role")):
            return None
        parts = list_in(body.get("parts"))
        identity = string_in(body, "messageId", "message_id") or f"#{len(self._said)}"
        self._said.setdefault(identity, _PartialContent(body, [])).parts.append(parts)
        self._has_content |= bool(parts)
        text = "\n".join(texts_in(parts_in(parts)))
        others = _other_parts(parts)
        return Progress(kind="status", text=text, parts=others) if text or others else None

    def _take_artifact(self, body: JsonObject) -> Progress | None:
        artifact = body["artifact"]
        if not isinstance(artifact, dict):
            return None
        goes_on = self._keep_artifact(artifact, body)
        parts = list_in(artifact.get("parts"))
        text = "\n".join(texts_in(parts_in(parts)))
        others = _other_parts(parts)
        last = body.get("lastChunk", body.get("last_chunk")) is True
        if not (text or others or last):
            return None
        return Progress(
            kind="artifact",
            text=text,
            artifact_id=string_in(artifact, "artifactId", "artifact_id"),
            name=string_in(artifact, "name"),
            append=goes_on,
            last=last,
            parts=others,
        )

    def _keep_artifact(self, artifact: JsonObject, event: JsonObject) -> bool:
        """Keeps a piece of an artifact; True when it goes on with what was there."""
        inner = artifact.get("artifact")
        if isinstance(inner, dict):
            artifact = inner
        appends = event.get("append") is True or artifact.get("append") is True
        identity = string_in(artifact, "artifactId", "artifact_id")
        key = f"#{len(self._artifacts) - appends}" if identity is None else f"id:{identity}"
        parts = list_in(artifact.get("parts"))
        self._has_content |= bool(parts)
        earlier = self._artifacts.get(key) if appends else None
        if earlier is not None:
            earlier.parts.append(parts)
            earlier.artifact = earlier.artifact | _merged_metadata(earlier.artifact, artifact)
            return True
        self._has_gap |= appends
        head = {name: value for name, value in artifact.items() if name != "append"}
        self._artifacts[key] = _PartialContent(head, [parts])
        return False

    def _keep_metadata(self, body: JsonObject) -> None:
        if self._direct is None:
            self._folded |= _merged_metadata(self._folded, body)

    def _assembled_task(self) -> JsonObject:
        task: JsonObject = {"kind": "task"}
        if self._remote_task_id is not None:
            task["id"] = self._remote_task_id
        if self._context_id is not None:
            task["contextId"] = self._context_id
        task |= self._folded
        if self._state is None and "error" not in task:
            # Artifacts arrived, but no status of the task.
            task["status"] = {"state": "working"}
        if self._said and "history" not in task:
            task["history"] = [_whole(pieces) for pieces in self._said.values()]
        artifacts: list[Json] = [_whole(pieces) for pieces in self._artifacts.values()]
        if artifacts:
            task["artifacts"] = artifacts
        return task


def _merged_metadata(earlier: JsonObject, later: JsonObject) -> JsonObject:
    """The metadata of both as a field; nothing where the later one has none."""
    added, kept = later.get("metadata"), earlier.get("metadata")
    if not isinstance(added, dict):
        return {}
    return {"metadata": {**kept, **added} if isinstance(kept, dict) else added}


def _whole(pieces: _PartialContent) -> JsonObject:
    return {**pieces.artifact, "parts": _joined(pieces.parts)}


def _joined(pieces: list[list[Json]]) -> list[Json]:
    """The parts of all pieces, where a text that begins a piece goes on with one that ended the last."""
    parts: list[Json] = []
    texts: list[str] = []
    for piece in pieces:
        for index, part in enumerate(piece):
            text = part.get("text") if isinstance(part, dict) else None
            if index == 0 and texts and isinstance(text, str) and _differ_only_in_text(parts[-1], part):
                texts.append(text)
                continue
            _close(parts, texts)
            parts.append(part)
            texts = [text] if isinstance(text, str) else []
    _close(parts, texts)
    return parts


def _close(parts: list[Json], texts: list[str]) -> None:
    last = parts[-1] if parts else None
    if len(texts) > 1 and isinstance(last, dict):
        parts[-1] = last | {"text": "".join(texts)}


def _differ_only_in_text(last: Json, part: Json) -> bool:
    """Whether two text parts differ in nothing but their text."""
    if not isinstance(last, dict) or not isinstance(part, dict):
        return False
    return last.keys() == part.keys() and all(last[name] == part[name] for name in part if name != "text")


def _has_output(message: V03Message | None) -> bool:
    return any(not is_thought(part) for part in parts_of(message))


def _is_whole(body: JsonObject) -> bool:
    """Whether this is a Task, and not only its status."""
    return "id" in body and "final" not in body and string_in(body, "kind", "type") != "status-update"


def _status_parts(body: JsonObject) -> list[Json]:
    """The parts of what the agent says in a status."""
    status = body.get("status")
    message = status.get("message") if isinstance(status, dict) else None
    if not isinstance(message, dict) or is_user(message.get("role")):
        return []
    return list_in(message.get("parts"))


def _other_parts(parts: list[Json]) -> list[Json]:
    """The parts that are neither text nor thinking, as they may be shown."""
    return [
        shown_part(part)
        for part in parts
        if isinstance(part, dict)
        and not isinstance(part.get("text"), str)
        and not any(is_thought(read) for read in parts_in([part]))
    ]
