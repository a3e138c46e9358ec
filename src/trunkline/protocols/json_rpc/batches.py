"""
JSON-RPC batches: requests of several tasks that travel as one, and the answers that come back in any order.

    request  [{"jsonrpc": "2.0", "id": "a", …}, {"jsonrpc": "2.0", "id": "b", …}]
    answer   [{"jsonrpc": "2.0", "id": "b", "result": …}, {"jsonrpc": "2.0", "id": "a", "error": …}]
             {"jsonrpc": "2.0", "id": null, "error": …}         the batch as a whole was refused

An answer is a task's by its `id`. An error without one is taken where only one task is left that it could be
for. A task without an answer fails alone (`agent_batch_answer_missing`); what answers no task of the batch, or
one a second time, is noted and not used. `protocol_config.batch` asks for it: {"max": 20, "wait_ms": 10}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from trunkline.jsontypes import Json, encode
from trunkline.protocols.answer_json import JsonReader, NotJson
from trunkline.protocols.config import BATCH
from trunkline.protocols.json_rpc.envelope import VERSION
from trunkline.protocols.outcomes import AgentAnswer

# An agent can send any number of unsolicited answers.
_MAX_NOTES = 10


class BatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """So many tasks at most in one request; and how long the first waits for others."""

    max: int
    wait_ms: int


class BatchAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch brought: for each request its answer, or None; and what was wrong with it."""

    answers: list[AgentAnswer | None]
    notes: tuple[str, ...] = ()


class _RequestEnvelope(msgspec.Struct):
    id: Json = None
    jsonrpc: Json = None


_arrays = JsonReader(list[Raw])
_objects = JsonReader(_RequestEnvelope)


def batch_limits(config: Mapping[str, Json] | None) -> BatchLimits | None:
    """What a `protocol_config` that has been checked asks for; None: every task in a request of its own."""
    wanted = (config or {}).get("batch")
    if not isinstance(wanted, dict) or BATCH.problem(wanted) is not None:
        return None
    numbers = {name: wanted.get(name, allowed.default) for name, allowed in BATCH.ranges.items()}
    return msgspec.convert(numbers, BatchLimits)


def request_id(body: bytes) -> str:
    """The id of one request, as JSON text."""
    return encode(_objects.read(body).id).decode()


def is_call(body: bytes) -> bool:
    """Whether this is a JSON-RPC request, which can travel in a batch."""
    try:
        call = _objects.read(body)
    except (NotJson, msgspec.ValidationError):
        return False
    return call.jsonrpc == VERSION and call.id is not None


def join_requests(bodies: Sequence[bytes]) -> bytes:
    """One request; a single one needs no array."""
    return bodies[0] if len(bodies) == 1 else b"[" + b",".join(bodies) + b"]"


def split_answers(answer: AgentAnswer, ids: Sequence[str]) -> BatchAnswers:
    """The answer of a batch, for the requests with these ids in their order."""
    if len(ids) == 1:
        return BatchAnswers(answers=[answer])
    items = _items(answer.body)
    if items is None:
        # No batch of answers: what it is, it is for all.
        return BatchAnswers(answers=[answer] * len(ids))
    notes: list[str] = []
    found: dict[str, Raw] = {}
    nameless: list[Raw] = []
    for item in items:
        name = _name(item)
        if name == "null":
            nameless.append(item)
        elif name is None or name not in ids:
            notes.append(
                f"The batch contains an answer that matches none of its requests: id {name or 'unreadable'}"
            )
        elif name in found:
            notes.append(f"The batch contains several answers with the id {name}: the first one is used")
        else:
            found[name] = item
    missing = [name for name in ids if name not in found]
    if len(missing) == 1 and len(nameless) == 1:
        found[missing[0]] = nameless.pop()
    notes.extend("The batch contains an answer without an id" for _ in nameless)
    return BatchAnswers(
        answers=[_single(answer, found[name]) if name in found else None for name in ids],
        notes=tuple(notes[:_MAX_NOTES]),
    )


def _items(body: bytes) -> list[Raw] | None:
    try:
        return _arrays.read(body)
    except NotJson:
        return None
    except msgspec.ValidationError:
        pass
    try:
        answered = _objects.read(body).id
    except (NotJson, msgspec.ValidationError):
        return None
    # One answer with a name is one request's; one without is about the batch.
    return None if answered is None else [Raw(body)]


def _name(item: Raw) -> str | None:
    try:
        return request_id(bytes(item))
    except (NotJson, msgspec.ValidationError):
        return None


def _single(answer: AgentAnswer, item: Raw) -> AgentAnswer:
    return AgentAnswer(status=answer.status, headers=answer.headers, body=bytes(item))
