"""
Zones: one checks and authorises a task, another runs it, and a JSON-RPC contract is between them.

    zone.py, methods.py, params.py, documents.py   `Zone`: an author's functions as methods, and their documents
    call_runner.py, thread_pool.py                 runs each call once, also over restarts
    jsonrpc.py, errors.py                          requests, replies and errors of the contract
    client.py                                      `ZoneClient`: calls the methods of a zone
    access/                                        who may call what: policy, signed tokens, certificates, the audit
    serving/                                       a zone behind HTTP (ASGI), or on its standard input and output

The transport decides what carries the bytes; neither side depends on it. docs/reference/zone-contract.md has the
contract. `Link` and `open_link` are aliases of `ZoneClient` and `open_zone_client`.
"""

from typing import TYPE_CHECKING

from trunkline.zones.errors import ZoneFault
from trunkline.zones.zone import Zone

if TYPE_CHECKING:
    from trunkline.zones.client import (
        Link,
        ZoneCallFailed,
        ZoneCallUnfinished,
        ZoneClient,
        open_link,
        open_zone_client,
    )

__all__ = [
    "Link",
    "Zone",
    "ZoneCallFailed",
    "ZoneCallUnfinished",
    "ZoneClient",
    "ZoneFault",
    "open_link",
    "open_zone_client",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        # On demand: a zone that only serves needs no HTTP client.
        from trunkline.zones import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
