"""
The archive: the file that an export writes and an import reads.

A gzip stream of frames, each a length of four bytes and a MessagePack value: a header, batches of rows, and a trailer
with the number of rows of every table and a digest of all that came before. A file without its trailer is not whole.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias, cast

import msgspec

from trunkline.clock import Instant
from trunkline.errors import Conflict, Invalid, NotFound, Unavailable
from trunkline.stores.port.transfer import TABLES, TableRow, TransferTable

VERSION = 1
_FORMAT = "trunkline-export"
_LENGTH_BYTES = 4
# Far above the longest row: a greater length was never written by us.
_MAX_FRAME_BYTES = 1 << 30
# The fastest: most of the content is JSON, which compresses well anyway.
_COMPRESSION = 1
_COLUMNS = {table.name: table.columns for table in TABLES}
_VALUES = (str, bytes, int, type(None))
_TABLES = {table.name: table for table in TABLES}


class _ArchiveHeader(msgspec.Struct, frozen=True, array_like=True, tag="header"):
    format: str
    version: int
    at: Instant
    # The columns of every table, in the order of the rows' values.
    columns: dict[str, tuple[str, ...]]


class _ArchiveRows(msgspec.Struct, frozen=True, array_like=True, tag="rows"):
    table: str
    # Each value is one of `stores.tables.Value`; msgspec cannot tell text and bytes apart by a type.
    rows: list[tuple[object, ...]]


class _ArchiveTrailer(msgspec.Struct, frozen=True, array_like=True, tag="trailer"):
    counts: dict[str, int]
    sha256: bytes


_Frame: TypeAlias = _ArchiveHeader | _ArchiveRows | _ArchiveTrailer
_encoder = msgspec.msgpack.Encoder()
_frames: msgspec.msgpack.Decoder[_Frame] = msgspec.msgpack.Decoder(_Frame)


class ArchiveContents(msgspec.Struct, frozen=True):
    """What a whole file has: when everything was exported, and how many rows of each table."""

    at: Instant
    counts: Mapping[str, int]


class ArchiveWriter:
    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._gzip = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=_COMPRESSION, mtime=0)
        self._digest = hashlib.sha256()
        self._counts: Counter[str] = Counter()

    def begin(self, at: Instant) -> None:
        self._write(_ArchiveHeader(_FORMAT, VERSION, at, _COLUMNS))

    def add(self, table: TransferTable, rows: Sequence[TableRow]) -> None:
        self._counts[table.name] += len(rows)
        self._write(_ArchiveRows(table.name, [tuple(row) for row in rows]))

    def finish(self) -> Mapping[str, int]:
        """All of it is on the disk when this returns; the number of rows of each table."""
        counts = {name: self._counts[name] for name in _COLUMNS}
        self._write(_ArchiveTrailer(counts, self._digest.digest()))
        with _writable(self._path):
            self._gzip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
        return counts

    def close(self) -> None:
        """Call it before the file is closed: the compressor would write to it when it is collected."""
        # A file that is not finished is deleted or has no trailer, so it does not matter whether the rest is written.
        with suppress(OSError):
            self._gzip.close()

    def _write(self, frame: _Frame) -> None:
        encoded = _encoder.encode(frame)
        data = len(encoded).to_bytes(_LENGTH_BYTES, "big") + encoded
        self._digest.update(data)
        with _writable(self._path):
            self._gzip.write(data)


@contextmanager
def open_writer(path: Path) -> Generator[ArchiveWriter]:
    """The file has its name only after the block has ended well, and only its owner can read it."""
    if path.exists():
        raise Conflict(
            f"The file {path} already exists.", fix="Choose another file name, or move the file elsewhere."
        )
    partial = path.with_name(path.name + ".partial")
    with _writable(path):
        try:
            # Exclusive: a file or a link that is there already would keep its own permissions, or lead elsewhere.
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as exc:
            raise Conflict(
                f"The file {partial} already exists. An earlier export did not finish, or another one is running.",
                fix="If no other export is running, remove the file, and export again.",
            ) from exc
    try:
        with os.fdopen(descriptor, "wb") as file:
            writer = ArchiveWriter(file, path)
            try:
                yield writer
            finally:
                writer.close()
        with _writable(path):
            partial.rename(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def _writable(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as exc:
        raise Unavailable(
            f"Cannot write to {path}: {exc.strerror or exc}.",
            fix="Choose a file in a writable folder with enough space, and export again.",
        ) from exc


def check_archive(path: Path) -> ArchiveContents:
    """Reads all of it; raises `Invalid` when it is not whole, or not ours."""
    digest, counts = hashlib.sha256(), Counter[str]()
    header: _ArchiveHeader | None = None
    for data in _read(path):
        frame = _decoded(path, data)
        if header is None:
            header = _checked_header(path, frame)
        elif isinstance(frame, _ArchiveRows):
            _check_rows(path, frame)
            counts[frame.table] += len(frame.rows)
        elif isinstance(frame, _ArchiveTrailer):
            if frame.sha256 != digest.digest() or Counter(frame.counts) != counts:
                break
            return ArchiveContents(header.at, frame.counts)
        digest.update(data)
    raise _damaged(path)


def read_archive(path: Path) -> Iterator[tuple[TransferTable, list[TableRow]]]:
    """The batches of a file that was checked."""
    for data in _read(path):
        frame = _decoded(path, data)
        if isinstance(frame, _ArchiveRows):
            # Checked, one by one, by `_check_rows`.
            yield _TABLES[frame.table], cast("list[TableRow]", frame.rows)


def _read(path: Path) -> Iterator[bytes]:
    """The frames as they are in the file, each with its length."""
    try:
        with gzip.open(path, "rb") as file:
            while prefix := file.read(_LENGTH_BYTES):
                length = int.from_bytes(prefix, "big")
                data = file.read(length) if length <= _MAX_FRAME_BYTES else b""
                if len(prefix) < _LENGTH_BYTES or len(data) < length:
                    raise _damaged(path)
                yield prefix + data
    except FileNotFoundError as exc:
        raise NotFound(f"The file {path} does not exist.", fix="Check the path.") from exc
    except gzip.BadGzipFile as exc:
        raise _damaged(path) from exc
    except OSError as exc:
        raise Unavailable(
            f"Cannot read {path}: {exc.strerror or exc}.", fix="Check the file's permissions."
        ) from exc
    except (EOFError, zlib.error) as exc:
        raise _damaged(path) from exc


def _decoded(path: Path, data: bytes) -> _Frame:
    try:
        return _frames.decode(memoryview(data)[_LENGTH_BYTES:])
    except msgspec.MsgspecError as exc:
        raise _damaged(path) from exc


def _checked_header(path: Path, frame: _Frame) -> _ArchiveHeader:
    if not isinstance(frame, _ArchiveHeader) or frame.format != _FORMAT:
        raise _damaged(path)
    if frame.version != VERSION or frame.columns != _COLUMNS:
        raise Invalid(
            f"{path} was written by a different version of Trunkline.",
            fix="Export and import with the same version.",
        )
    return frame


def _check_rows(path: Path, frame: _ArchiveRows) -> None:
    width = len(_COLUMNS.get(frame.table, ()))
    if width == 0 or any(len(row) != width for row in frame.rows):
        raise _damaged(path)
    if not all(isinstance(value, _VALUES) for row in frame.rows for value in row):
        raise _damaged(path)


def _damaged(path: Path) -> Invalid:
    return Invalid(
        f"{path} is not a complete archive. Nothing was imported.",
        fix="Copy the archive again, or export again. The source is still readable.",
    )
