"""Notices as texts, each short enough for NOTIFY. What is none of ours is heard as nothing."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator

from trunkline.ids import RunId
from trunkline.stores.base import InboxFilled, Notice, RunsChanged, TasksRung

CHANNEL = "trunkline"

_INBOX_FILLED = "i"
_TASKS_RUNG = "t"
_RUNS_CHANGED = re.compile(r"r([0-9]+):((?:[0-9A-Za-z_-]{22})+)")
# A payload of NOTIFY has less than 8,000 bytes; an id takes 22.
_MOST_IDS = 300
_ID_LENGTH = 22


def written(notices: Iterable[Notice]) -> list[str]:
    """All of them as few texts."""
    filled = rung = False
    moved: set[RunId] = set()
    ended: set[RunId] = set()
    for notice in notices:
        match notice:
            case InboxFilled():
                filled = True
            case TasksRung():
                rung = True
            case RunsChanged():
                moved.update(notice.run_ids)
                ended.update(notice.ended)
    # Those that have ended come first, and their number before them.
    ids = [*(_short(run_id) for run_id in ended), *(_short(run_id) for run_id in moved - ended)]
    texts = [text for text, is_meant in ((_INBOX_FILLED, filled), (_TASKS_RUNG, rung)) if is_meant]
    for start in range(0, len(ids), _MOST_IDS):
        chunk = ids[start : start + _MOST_IDS]
        texts.append(f"r{min(max(len(ended) - start, 0), len(chunk))}:{''.join(chunk)}")
    return texts


def read(text: str) -> Notice | None:
    if text == _INBOX_FILLED:
        return InboxFilled()
    if text == _TASKS_RUNG:
        return TasksRung()
    match = _RUNS_CHANGED.fullmatch(text)
    if match is None:
        return None
    ids = list(_long(match[2]))
    return RunsChanged(ids, frozenset(ids[: int(match[1])]))


def _short(run_id: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(run_id.replace("-", ""))).decode().rstrip("=")


def _long(ids: str) -> Iterator[RunId]:
    for start in range(0, len(ids), _ID_LENGTH):
        digits = urlsafe_b64decode(ids[start : start + _ID_LENGTH] + "==").hex()
        yield RunId(f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}")
