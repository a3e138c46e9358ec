"""
The updates of a task, in the form of 1.0: each follows from one event of its run, so every reader gets the same ones.

    {"statusUpdate": {"taskId", "contextId", "status"}}
    {"artifactUpdate": {"taskId", "contextId", "artifact", "append", "lastChunk"}}

What an agent says while it works is passed on if its answer is the run's output. An artifact that differs at the end
from what was passed on comes once more as a whole, and replaces it.

An update's id is the number of its event. If an event has several, all but the last one have `NUMBER.PLACE`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from msgspec import UNSET

from trunkline.api.paging import read_within
from trunkline.clock import Instant
from trunkline.errors import NotFound, Unavailable
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.state import FINAL_RUN_STATUSES, TaskState
from trunkline.messages import CallerMessage
from trunkline.publishing.answers import AnswerReader, PublishedAnswer
from trunkline.publishing.artifacts import part_v1
from trunkline.publishing.tasks import failure_text, said_message, state_v1, timestamp
from trunkline.services.runs.queries import RunQueries
from trunkline.stores.base import EventRecord
from trunkline.workflow import CompiledWorkflow

# Read at once; fewer if they are large.
_BATCH = 500
# An agent that has more artifacts than this while it works is not repeated to callers that come later; its answer is.
MAX_PARTIAL_ARTIFACTS = 5_000
# Of what was said of artifacts, so much is kept between two updates. More is read again where it is needed.
MAX_KEPT_CHARACTERS = 256 * 1024
_POSITION = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,6}))?")


class Position(NamedTuple):
    """Up to where a caller has read: all events up to `seq`, and `skip` updates of the one after it."""

    seq: int
    skip: int = 0


class _Question(NamedTuple):
    """The event in which a step asked, and what it waits for."""

    seq: int
    waiting_for: JsonObject


class Update(NamedTuple):
    id: str
    body: JsonObject
    # The state that the task has by it; None: it says nothing of that.
    state: TaskState | None


def read_position(text: str) -> Position | None:
    """What an update's id says; None if we have not made it."""
    match = _POSITION.fullmatch(text.strip())
    if match is None:
        return None
    seq = int(match[1])
    return Position(seq) if match[2] is None else Position(max(seq - 1, 0), int(match[2]))


def speaking_step(workflow: CompiledWorkflow) -> str | None:
    """The step whose answer is the run's output, if there is one that calls an agent."""
    if workflow.definition.output is not UNSET:
        return None
    last = [plan for plan in workflow.steps.values() if not plan.dependents]
    if len(last) != 1 or last[0].for_each is not None or not last[0].agent:
        return None
    return last[0].name


class PartialArtifacts:
    """
    The artifacts of a task as its updates have brought them so far.

    `most_characters`: with more than that, only their ids are kept, and `is_whole` is false. None: everything is kept.
    """

    def __init__(self, most_characters: int | None = None) -> None:
        self._artifacts: dict[str, JsonObject] = {}
        self._most_characters = most_characters
        self._characters = 0

    @property
    def is_whole(self) -> bool:
        return self._most_characters is None or self._characters <= self._most_characters

    def add(self, progress: JsonObject) -> tuple[JsonObject, bool]:
        """One piece, of a `Progress`; the artifact to send, and whether it continues one that was sent."""
        parts = _parts_of(progress)
        named = progress.get("artifact_id")
        identity = named if isinstance(named, str) and named else "output"
        known = self._artifacts.get(identity)
        appends = progress.get("append") is True and known is not None
        piece: JsonObject = {"artifactId": identity}
        if isinstance(progress.get("name"), str):
            piece["name"] = progress["name"]
        piece["parts"] = list(parts)
        if known is None and len(self._artifacts) >= MAX_PARTIAL_ARTIFACTS:
            # It comes once more at the end.
            return piece, appends
        self._characters += len(encode(piece))
        if not self.is_whole:
            # From now on it is only known which ones there are.
            self._artifacts = {name: {} for name in (*self._artifacts, identity)}
        elif known is None or not appends:
            self._artifacts[identity] = piece
        else:
            self._artifacts[identity] = {**known, "parts": _joined(known["parts"], parts)}
        return piece, appends

    def whole(self) -> list[JsonObject]:
        return list(self._artifacts.values())


def _parts_of(progress: JsonObject) -> list[JsonObject]:
    listed = progress.get("parts")
    parts = [part_v1(part) for part in listed] if isinstance(listed, list) else []
    text = progress.get("text")
    texts: list[JsonObject] = [{"text": text}] if isinstance(text, str) and text else []
    return texts + [part for part in parts if part is not None and not _is_cut(part)]


def _is_cut(part: JsonObject) -> bool:
    """The event has only the beginning of the file; all of it is in the artifact at the end."""
    return str(part.get("raw", "")).endswith("…")


def _joined(known: Json, parts: Sequence[JsonObject]) -> list[Json]:
    """A text goes on where the text before it ended."""
    joined: list[Json] = list(known) if isinstance(known, list) else []
    for number, part in enumerate(parts):
        last = joined[-1] if joined else None
        if number == 0 and isinstance(last, dict) and last.keys() == {"text"} == part.keys():
            joined[-1] = {"text": f"{last['text']}{part['text']}"}
        else:
            joined.append(part)
    return joined


class TaskUpdates:
    """Reads the updates of one task."""

    def __init__(
        self,
        queries: RunQueries,
        answers: AnswerReader,
        run_id: RunId,
        message: CallerMessage,
        workflow: CompiledWorkflow,
    ) -> None:
        self._queries = queries
        self._answers = answers
        self._run_id = run_id
        self._message_of_caller = message
        self._about: JsonObject = {"taskId": run_id, "contextId": message.context_id}
        self._speaking = speaking_step(workflow)
        # What was passed on, and up to which event of the run.
        self._sent = PartialArtifacts(MAX_KEPT_CHARACTERS)
        self._sent_up_to = 0
        # The last question of each step, and up to which event of the run it is known.
        self._questions: dict[str, tuple[int, _Question | None]] = {}

    async def after(self, position: Position) -> tuple[list[Update], Position, bool]:
        """The next updates, up to where they go, and whether they are the last ones."""
        try:
            # Read before the events: if the run is final now, the events read next are all of them.
            status, _ = await self._queries.status(self._run_id)
            events, more = await read_within(
                lambda seen, limit: self._queries.events(self._run_id, after=seen, limit=limit),
                position.seq,
                _BATCH,
                key=lambda event: event.seq,
                size_bytes=lambda event: len(event.data),
            )
        except Unavailable:
            # The stream waits with the work, and goes on when the store is back.
            return [], position, False
        updates: list[Update] = []
        for event in events:
            updates += (await self.of_event(event))[position.skip :]
            if self._sent_up_to == position.seq:
                # Nothing was left out, so nothing has to be read again.
                self._sent_up_to = event.seq
            position = Position(event.seq)
        return updates, position, status in FINAL_RUN_STATUSES and not more

    async def of_event(self, event: EventRecord) -> list[Update]:
        """What follows from one event. Events must be given in their order."""
        bodies = await self._of_event(event)
        return [
            Update(str(event.seq) if place == len(bodies) else f"{event.seq}.{place}", body, state)
            for place, (body, state) in enumerate(bodies, 1)
        ]

    async def partial_artifacts(self, up_to: int) -> list[JsonObject]:
        """What the agent has said of its artifacts up to this event."""
        return (await self._all_sent(up_to)).whole()

    async def _of_event(self, event: EventRecord) -> list[tuple[JsonObject, TaskState | None]]:
        match event.type:
            case "RunStarted" | "RunContinued":
                return [self._status("working", event.at)]
            case "StepProgress":
                return await self._progress(event)
            case "RunWaiting":
                return await self._question(event)
            case "RunCompleted":
                return await self._completed(event)
            case "RunFailed":
                return [await self._failure(event)]
            case "RunCancelled":
                return [self._status("canceled", event.at)]
            case _:
                return []

    def _status(
        self, state: TaskState, at: Instant, message: JsonObject | None = None
    ) -> tuple[JsonObject, TaskState]:
        status: JsonObject = {"state": state_v1(state), "timestamp": timestamp(at)}
        if message is not None:
            status["message"] = message
        return {"statusUpdate": {**self._about, "status": status}}, state

    def _message(self, name: str, parts: Sequence[JsonObject]) -> JsonObject:
        return {
            "messageId": f"{self._run_id}/{name}",
            **self._about,
            "role": "ROLE_AGENT",
            "parts": list(parts),
        }

    async def _progress(self, event: EventRecord) -> list[tuple[JsonObject, TaskState | None]]:
        data = _data(event)
        if self._speaking is None or data.get("step") != self._speaking:
            return []
        sent = await self._sent_before(event.seq)
        self._sent_up_to = event.seq
        updates: list[tuple[JsonObject, TaskState | None]] = []
        for number, news in enumerate(_objects(data.get("news"))):
            match news.get("kind"):
                case "artifact":
                    update = self._piece(sent, news)
                    if update is not None:
                        updates.append((update, None))
                case "status" if parts := _parts_of(news):
                    message = self._message(f"progress/{event.seq}.{number}", parts)
                    updates.append(self._status("working", event.at, message))
                case _:
                    pass
        return updates

    def _piece(self, sent: PartialArtifacts, news: JsonObject) -> JsonObject | None:
        if not _parts_of(news):
            return None
        artifact, appends = sent.add(news)
        return self._artifact(artifact, append=appends, last=news.get("last") is True)

    def _artifact(self, artifact: JsonObject, *, append: bool, last: bool) -> JsonObject:
        update: JsonObject = {**self._about, "artifact": artifact, "append": append, "lastChunk": last}
        return {"artifactUpdate": update}

    async def _completed(self, event: EventRecord) -> list[tuple[JsonObject, TaskState | None]]:
        """The artifacts that callers do not have yet as they are, and the end."""
        answer = await self._answer()
        sent = (await self._all_sent(event.seq - 1)).whole()
        said = answer.status_message or answer.message
        message = said and said_message(self._run_id, self._message_of_caller, said)
        body, state = self._status("completed", event.at, message)
        if answer.metadata is not None and isinstance(update := body["statusUpdate"], dict):
            update["metadata"] = answer.metadata
        return [
            *(
                (self._artifact(artifact, append=False, last=True), None)
                for artifact in answer.artifacts
                if artifact not in sent
            ),
            (body, state),
        ]

    async def _answer(self) -> PublishedAnswer:
        try:
            record, steps = await self._queries.find(self._run_id)
        except NotFound:
            return PublishedAnswer()
        return await self._answers.of(record, steps, of_agent=self._message_of_caller.is_for_agent)

    async def _question(self, event: EventRecord) -> list[tuple[JsonObject, TaskState | None]]:
        """The question that was asked first, of those that the run waits for."""
        data = _data(event)
        steps = data.get("steps")
        names = [str(step) for step in steps] if isinstance(steps, list) else []
        self._questions = {step: known for step, known in self._questions.items() if step in names}
        asked: list[tuple[int, str, JsonObject]] = []
        for step in names:
            waiting = await self._waiting(step, event.seq)
            if waiting is not None:
                asked.append((waiting.seq, step, waiting.waiting_for))
        if not asked:
            return []
        seq, step, waiting_for = min(asked, key=lambda each: each[:2])
        parts: list[JsonObject] = [{"text": str(waiting_for.get("text", ""))}]
        state: TaskState = "auth-required" if waiting_for.get("kind") == "auth" else "input-required"
        question = await self._question_data(step) if "data" in waiting_for else None
        if question is not None:
            parts.append({"data": question})
        return [self._status(state, event.at, self._message(f"question/{step}/{seq}", parts))]

    async def _waiting(self, step: str, before: int) -> _Question | None:
        """The number of the last event before in which the step asked, and what it waits for."""
        up_to, found = self._questions.get(step, (0, None))
        if up_to >= before:
            up_to, found = 0, None
        async for event in self._events_of(step, after=up_to, before=before):
            if event.type == "StepWaiting":
                waiting = _data(event).get("waiting_for")
                is_asked = isinstance(waiting, dict) and waiting.get("kind") in {"input", "auth"}
                found = _Question(event.seq, waiting) if isinstance(waiting, dict) and is_asked else None
        self._questions[step] = before - 1, found
        return found

    async def _question_data(self, step: str) -> Json:
        """What came with a question that is not text. It is in the step, and gone when the step has gone on."""
        _, state = await self._queries.find_step(self._run_id, step)
        return None if state.waiting_for is None else state.waiting_for.data

    async def _failure(self, event: EventRecord) -> tuple[JsonObject, TaskState]:
        error = _data(event).get("error")
        fields = error if isinstance(error, dict) else {}
        state: TaskState = "rejected" if fields.get("rejected") is True else "failed"
        message = self._message("error", [{"text": failure_text(str(fields.get("message", "")))}])
        return self._status(state, event.at, message)

    async def _sent_before(self, seq: int) -> PartialArtifacts:
        """What was passed on before this event. Only the events since the last call are read."""
        if self._sent_up_to >= seq:
            # An update is made once more, because its receiver has not accepted it.
            self._sent, self._sent_up_to = PartialArtifacts(MAX_KEPT_CHARACTERS), 0
        if self._sent_up_to < seq - 1:
            await self._read_sent(self._sent, after=self._sent_up_to, before=seq)
            self._sent_up_to = seq - 1
        return self._sent

    async def _all_sent(self, up_to: int) -> PartialArtifacts:
        """What was passed on up to this event, however much it is."""
        sent = await self._sent_before(up_to + 1)
        if sent.is_whole:
            return sent
        whole = PartialArtifacts()
        await self._read_sent(whole, after=0, before=up_to + 1)
        return whole

    async def _read_sent(self, sent: PartialArtifacts, *, after: int, before: int) -> None:
        if self._speaking is None:
            return
        async for event in self._events_of(self._speaking, after=after, before=before):
            for news in _objects(_data(event).get("news")):
                if news.get("kind") == "artifact" and _parts_of(news):
                    sent.add(news)

    async def _events_of(self, step: str, *, after: int, before: int) -> AsyncGenerator[EventRecord]:
        """The step's events between two of the run, neither included. A page of them is in memory at a time."""
        more = True
        while more and after + 1 < before:
            page, more = await read_within(
                lambda seen, limit: self._queries.events(self._run_id, after=seen, limit=limit, step=step),
                after,
                # Numbers have no gaps.
                min(_BATCH, before - after - 1),
                key=lambda event: event.seq,
                size_bytes=lambda event: len(event.data),
            )
            for event in page:
                if event.seq >= before:
                    return
                yield event
            after = page[-1].seq if page else after


def _data(event: EventRecord) -> JsonObject:
    data = decode(event.data)
    return data if isinstance(data, dict) else {}


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
