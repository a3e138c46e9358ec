"""`trunkline zone audit`: whom a zone has turned away, read from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.options import JsonFlag
from trunkline.cli.rendering.output import note, print_json, print_table
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.stores.zones import Refusal

DEFAULT_LIMIT = 50


def audit(
    *,
    data: str | None = None,
    limit: Annotated[int, Parameter(validator=validators.Number(gte=1))] = DEFAULT_LIMIT,
    json: JsonFlag = False,
) -> int:
    """
    List the calls that a zone has refused, the newest first.

    The zone may be running. Nothing of a call's params or of its token is in there.

    Parameters
    ----------
    data
        The zone's data folder. Default: ./trunkline-data.
    limit
        At most this many; a zone keeps the newest 10,000.
    """
    with explained():
        from trunkline.clock import rfc3339  # noqa: PLC0415  (heavy; few commands need it)
        from trunkline.settings import load_settings  # noqa: PLC0415  (as above)
        from trunkline.zones.audit import newest_refusals, words_for  # noqa: PLC0415  (as above)

        folder = load_settings({} if data is None else {"data": data}).data
        found = newest_refusals(Path(folder), limit)
    shown = [_shown(refusal, rfc3339(refusal.at), words_for(refusal.reason)) for refusal in found]
    if json:
        print_json({"items": shown, "next_cursor": None})
        return Exit.OK
    rows = [
        [date_time(one["at"]), *(one[name] or "" for name in ("caller", "method", "reason", "detail"))]
        for one in shown
    ]
    print_table(("AT", "CALLER", "METHOD", "REASON", "DETAIL"), rows)
    if not rows:
        note("No call has been refused.")
    return Exit.OK


def _shown(refusal: Refusal, at: str, detail: str) -> dict[str, str | None]:
    return {
        "at": at,
        "caller": refusal.caller,
        "method": refusal.method,
        "correlation_id": refusal.correlation_id,
        "reason": refusal.reason,
        "detail": detail,
    }
