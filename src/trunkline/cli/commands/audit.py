"""`trunkline audit`: who changed what."""

from __future__ import annotations

import json
import time
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, ServerUnreachable
from trunkline.cli.inputs import Choice
from trunkline.cli.options import HERE, Cursor, Flag, Limit, Server, Time
from trunkline.cli.rendering.output import (
    harmless,
    note,
    note_next_page,
    print_json,
    print_now,
    print_table,
)
from trunkline.cli.rendering.times import date_time, parse_time
from trunkline.cli.rest.client import RECONNECT_PAUSE_SECONDS, RECONNECT_SECONDS, Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunkline.api.resources.system import AuditEntryResource
    from trunkline.jsontypes import Json

Kind = Annotated[
    Literal[
        "run",
        "workflow",
        "agent",
        "migration",
        "key",
        "secret",
        "dead_letter",
        "trigger",
        "subscription",
        "job",
    ],
    Choice,
]
# Entries of different processes can appear in another order than their times, by at most this.
_OVERLAP = timedelta(minutes=1)
# More than are written in that time, except by a very busy system, whose entries then come twice after an interruption.
_REMEMBERED = 10_000
# What a follower is shown of the time before.
_SHOWN_BEFORE = 10


def audit(
    *,
    who: str | None = None,
    kind: Kind | None = None,
    subject: str | None = None,
    since: Time = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    follow: Flag = False,
    export: Flag = False,
    server: Server = HERE,
) -> int:
    """
    Show who changed what, newest first.

    A started run has no entry, because the run itself says who started it. For calls that a zone rejected, use zone
    audit.

    Parameters
    ----------
    who
        List only changes made with the API key of this name.
    kind
        List only changes of this kind of object.
    subject
        List only changes of this object: the ID of a run or dead letter, or a name.
    since
        With --follow or --export: time of the first entry, such as 2026-03-01T12:00:00Z.
    follow
        Print the last entries, oldest first, and then each new one until Ctrl-C. With --json, each is a JSON line.
    export
        Print all entries as JSON lines, oldest first. With --follow, continue with each new entry.
    """
    asked = {"who": who, "kind": kind, "subject": subject}
    if follow or export:
        if cursor is not None:
            raise CliError(
                "--cursor cannot be combined with --follow or --export",
                fix="Use --since TIME.",
                exit_code=Exit.USAGE,
            )
        entries = (
            _followed(server.client(), asked, since, whole=export)
            if follow
            else _exported(server, asked, since)
        )
        for entry in entries:
            print_now(
                json.dumps(entry, ensure_ascii=False) if export or server.json else "  ".join(_row(entry))
            )
        return Exit.OK
    if since is not None:
        raise CliError("--since needs --follow or --export", fix="Add one of them.", exit_code=Exit.USAGE)
    page = server.client().audit(asked, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    print_table(("TIME", "WHO", "KIND", "ACTION", "SUBJECT", "DETAIL"), [_row(entry) for entry in page.items])
    if not page.items:
        note("No matching entries.")
    note_next_page(("audit",), asked, page.next_cursor)
    return Exit.OK


def _exported(
    server: Server, asked: Mapping[str, str | None], since: str | None
) -> Iterator[AuditEntryResource]:
    return server.client().audit_lines({**asked, "since": since})


def _followed(
    client: Client, asked: Mapping[str, str | None], since: str | None, *, whole: bool
) -> Iterator[AuditEntryResource]:
    """
    Each entry once, whatever happens to the connection: after an interruption the last minute is read again.

    `whole`: from the first entry, unless `since` says otherwise. Raises `ServerUnreachable` when the server stays away.
    """
    known: deque[str] = deque(maxlen=_REMEMBERED)
    if since is None and not whole:
        for entry in reversed(client.audit(asked, limit=_SHOWN_BEFORE).items):
            since = entry["at"]
            known.append(entry["id"])
            yield entry
    away_since: float | None = None
    while True:
        try:
            for entry in client.audit_lines({**asked, "since": since, "follow": "true"}):
                away_since = None
                if entry["id"] not in known:
                    known.append(entry["id"])
                    yield entry
                since = _resume_at(entry["at"])
        except ServerUnreachable:
            now = time.monotonic()
            away_since = away_since or now
            if now - away_since > RECONNECT_SECONDS:
                raise
        time.sleep(RECONNECT_PAUSE_SECONDS)


def _resume_at(at: str) -> str:
    read = parse_time(at)
    return at if read is None else (read - _OVERLAP).isoformat()


def _row(entry: AuditEntryResource) -> list[str]:
    detail = ", ".join(
        f"{name}={_text(value)}" for name, value in entry["detail"].items() if value not in (None, False, "")
    )
    return [
        date_time(entry["at"]),
        *map(harmless, (entry["who"] or "", entry["kind"], entry["action"], entry["subject"], detail)),
    ]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
