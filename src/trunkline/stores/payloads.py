"""
Large payloads, and long texts in them, are stored once: what of a stored value is kept apart, and how it is put
together again. Reading and writing them is in the backends.

The input of each item of a loop may have the same long text in it. So a value that is large is stored in pieces: its
long texts, or the value itself. A piece is found by its SHA-256. The row has a list of them instead of the value, and
begins with `MARK`, with which no JSON text begins. Put together in their order, the parts are the value, byte for byte.

    [what is before the first piece, digest, size, what is between it and the second one, digest, size, …, the rest]
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeAlias

import msgspec

from trunkline.machine.state import StepState
from trunkline.stores.port.runs import RunRecord
from trunkline.stores.rows import Value

# A value that is not larger is in its row, and so is a shorter text.
MAX_IN_ROW_BYTES = 64 * 1024
# Of a process: pieces that were read or written lately. A larger one is not kept.
MAX_CACHED_BYTES = 64 * 1024 * 1024
# What a run has stored and does not use any more is deleted when it is more than what it uses, and than this.
MAX_UNUSED_BYTES = 8 * 1024 * 1024
# Looking for long texts ends after so many quotes: a value with as many has hardly any.
_MAX_QUOTES = 20_000
# What such a row begins with.
MARK = b"\x00pieces\x00"
_MARKED = len(MARK)
_BACKSLASH = ord("\\")

_List: TypeAlias = list[bytes | int]
_lists: msgspec.msgpack.Decoder[_List] = msgspec.msgpack.Decoder(_List)


class Piece(NamedTuple):
    digest: bytes
    body: bytes


def is_split(value: bytes | None) -> bool:
    """Whether a column has a list of pieces."""
    return value is not None and value[:_MARKED] == MARK


def split(value: bytes) -> tuple[bytes, list[Piece]]:
    """What the row has, and the pieces. Without pieces the row has the value itself."""
    if len(value) <= MAX_IN_ROW_BYTES or value[:_MARKED] == MARK:
        return value, []
    spans = _long_texts(value)
    if len(value) - sum(end - start for start, end in spans) > MAX_IN_ROW_BYTES:
        spans = [(0, len(value))]
    listed: _List = []
    pieces: list[Piece] = []
    done = 0
    for start, end in spans:
        body = value[start:end]
        piece = Piece(sha256(body).digest(), body)
        listed += (value[done:start], piece.digest, len(body))
        pieces.append(piece)
        done = end
    listed.append(value[done:])
    return MARK + msgspec.msgpack.encode(listed), pieces


def _long_texts(value: bytes) -> list[tuple[int, int]]:
    """Where the long texts of a JSON text are, with their quotes."""
    found: list[tuple[int, int]] = []
    start = value.find(b'"')
    quotes = 0
    while start >= 0 and quotes < _MAX_QUOTES:
        end = start
        while True:
            end = value.find(b'"', end + 1)
            quotes += 1
            if end < 0 or quotes >= _MAX_QUOTES:
                return found
            before = end - 1
            while value[before] == _BACKSLASH:
                before -= 1
            if (end - before) % 2:
                break
        if end + 1 - start > MAX_IN_ROW_BYTES:
            found.append((start, end + 1))
        start = value.find(b'"', end + 1)
        quotes += 1
    return found


def pieces_of(stored: bytes) -> dict[bytes, int]:
    """The digests of the pieces, with their sizes."""
    listed = _lists.decode(memoryview(stored)[_MARKED:])
    return {
        digest: size
        for digest, size in zip(listed[1::3], listed[2::3], strict=True)
        if isinstance(digest, bytes) and isinstance(size, int)
    }


def size_of(stored: bytes) -> int:
    """Of the value."""
    listed = _lists.decode(memoryview(stored)[_MARKED:])
    return sum(part if isinstance(part, int) else len(part) for at, part in enumerate(listed) if at % 3 != 1)


def joined(stored: bytes, bodies: Mapping[bytes, bytes]) -> bytes:
    """The value of a column. Raises `KeyError` if a piece is missing."""
    if not is_split(stored):
        return stored
    listed = _lists.decode(memoryview(stored)[_MARKED:])
    parts: list[bytes] = []
    for at, part in enumerate(listed):
        if isinstance(part, bytes):
            parts.append(bodies[part] if at % 3 == 1 else part)
    return b"".join(parts)


# Rows as their columns get them, and by their number the pieces of those that have any.
SplitRows: TypeAlias = tuple[Sequence[tuple[Value, ...]], dict[int, list[Piece]]]


def split_rows(rows: Sequence[tuple[Value, ...]], places: Sequence[int]) -> SplitRows:
    """Rows to write: their values at these places are split. Nearly always there is nothing to do."""
    changed: dict[int, tuple[Value, ...]] = {}
    pieces: dict[int, list[Piece]] = {}
    for number, row in enumerate(rows):
        for place in places:
            value = row[place]
            if value.__class__ is bytes and len(value) > MAX_IN_ROW_BYTES:  # pyright: ignore[reportArgumentType] - it is bytes
                assert isinstance(value, bytes)  # noqa: S101 - for the type checker
                kept, more = split(value)
                before = changed.get(number, row)
                changed[number] = (*before[:place], kept, *before[place + 1 :])
                pieces.setdefault(number, []).extend(more)
    if not changed:
        return rows, pieces
    return [changed.get(number, row) for number, row in enumerate(rows)], pieces


class ReadOf(NamedTuple):
    """What is read of a step."""

    input: bool
    output: bool


ReadChoice: TypeAlias = Callable[[StepState], ReadOf]


def whole(_step: StepState) -> ReadOf:
    return ReadOf(input=True, output=True)


def for_decision(outputs_of: Collection[str] | None) -> ReadChoice:
    """As `RunWrites.load` says."""

    def choose(step: StepState) -> ReadOf:
        if not step.is_final:
            return ReadOf(input=True, output=True)
        return ReadOf(input=False, output=outputs_of is None or step.name in outputs_of)

    return choose


def pieces_in(values: Iterable[Value]) -> dict[bytes, int]:
    """Of values as their columns have them."""
    found: dict[bytes, int] = {}
    for value in values:
        if isinstance(value, bytes) and is_split(value):
            found.update(pieces_of(value))
    return found


# Bodies by digest, for digests with their sizes.
ReadPieces: TypeAlias = Callable[[Mapping[bytes, int]], Awaitable[dict[bytes, bytes]]]


def has_pieces(record: RunRecord | None, steps: Iterable[StepState]) -> bool:
    """Whether anything has to be put together. Hardly ever, so this asks quickly."""
    if record is not None:
        given, output = record.input, record.output
        if given[:_MARKED] == MARK or (output is not None and output[:_MARKED] == MARK):
            return True
    for step in steps:
        given, output = step.input, step.output
        if (given is not None and given[:_MARKED] == MARK) or (
            output is not None and output[:_MARKED] == MARK
        ):
            return True
    return False


async def restored_run(
    record: RunRecord, steps: list[StepState], read: ReadPieces, choose: ReadChoice = whole
) -> tuple[RunRecord, list[StepState]] | None:
    """A run as its rows have it, with its payloads; None: it was deleted meanwhile."""
    records = await restored_records([record], read)
    restored = await restored_steps(steps, read, choose)
    return (record, restored) if records and len(restored) == len(steps) else None


async def restored_records(records: Sequence[RunRecord], read: ReadPieces) -> list[RunRecord]:
    """Without those whose payloads are gone: they were deleted meanwhile."""
    bodies = await read(pieces_in(value for record in records for value in (record.input, record.output)))
    return [record for record in records if _restore_record(record, bodies)]


async def restored_steps(
    steps: Sequence[StepState], read: ReadPieces, choose: ReadChoice = whole
) -> list[StepState]:
    """The same for steps."""
    if not has_pieces(None, steps):
        return list(steps)
    wanted: list[bytes | None] = []
    for step in steps:
        is_read = choose(step)
        wanted += [step.input if is_read.input else None, step.output if is_read.output else None]
    bodies = await read(pieces_in(wanted))
    return [step for step in steps if _restore_step(step, bodies, choose(step))]


def _restore_record(record: RunRecord, bodies: Mapping[bytes, bytes]) -> bool:
    try:
        record.input = joined(record.input, bodies)
        record.output = None if record.output is None else joined(record.output, bodies)
    except KeyError:
        return False
    return True


def _restore_step(step: StepState, bodies: Mapping[bytes, bytes], is_read: ReadOf) -> bool:
    try:
        if step.input is not None:
            if is_read.input:
                step.input = joined(step.input, bodies)
            elif is_split(step.input):
                step.unread_input_bytes = size_of(step.input)
        if step.output is not None:
            if is_read.output:
                step.output = joined(step.output, bodies)
            elif is_split(step.output):
                step.unread_output_bytes = size_of(step.output)
    except KeyError:
        return False
    return True


class PieceCache:
    """Pieces that were read or written lately, by their digests: what a digest names never changes."""

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._max_bytes = max_bytes
        # Large statements run in threads.
        self._lock = threading.Lock()
        self._bodies: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def known(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._lock:
            for digest in digests:
                body = self._bodies.get(digest)
                if body is not None:
                    self._bodies.move_to_end(digest)
                    found[digest] = body
        return found

    def put(self, pieces: Iterable[tuple[bytes, bytes]]) -> None:
        with self._lock:
            for digest, body in pieces:
                if len(body) <= self._max_bytes and digest not in self._bodies:
                    self._bodies[digest] = body
                    self._bytes += len(body)
            while self._bytes > self._max_bytes:
                _, dropped = self._bodies.popitem(last=False)
                self._bytes -= len(dropped)
