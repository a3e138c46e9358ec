"""`trunkline audit`: who has changed what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Count, Server
from trunkline.cli.rendering.output import harmless, note, note_next_page, print_json, print_table
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.api.resources.system import AuditEntryResource
    from trunkline.jsontypes import Json

Kind = Literal["run", "workflow", "agent", "migration", "key", "secret", "dead_letter"]


def audit(
    *,
    who: str | None = None,
    kind: Kind | None = None,
    subject: str | None = None,
    limit: Count = 50,
    cursor: str | None = None,
    server: Server = HERE,
) -> int:
    """
    List what people have changed, newest first.

    Starting a run is no entry: the run itself is. Calls that a zone has refused: trunkline zone audit

    Parameters
    ----------
    who
        Only what the key of this name has changed.
    kind
        Only changes of this kind of thing.
    subject
        Only changes of this one: a run's or a dead letter's id, or a name.
    limit
        At most this many.
    cursor
        Go on where an earlier list ended: its next_cursor.
    """
    asked = {"who": who, "kind": kind, "subject": subject}
    page = server.client().audit(asked, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    print_table(("AT", "WHO", "KIND", "ACTION", "SUBJECT", "DETAIL"), [_row(entry) for entry in page.items])
    if not page.items:
        note("Nobody has changed anything like this.")
    note_next_page(("audit",), asked, page.next_cursor)
    return Exit.OK


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
