"""
The JSON-RPC contract between two zones: one that checks and authorises a task, and one that runs it.

    endpoint  a zone as a server: handlers behind one address, with a policy at its door
    link      a zone as its caller sees it: `await link.execute_task(params)`

What carries the bytes is a transport's business; neither side's code knows of it. The contract itself is in
docs/reference/zone-contract.md.
"""

from typing import TYPE_CHECKING

from trunkline.zones.endpoint import Zone
from trunkline.zones.faults import ZoneFault

if TYPE_CHECKING:
    from trunkline.zones.link import Link, ZoneCallFailed, ZoneCallUnfinished, open_link

__all__ = ["Link", "Zone", "ZoneCallFailed", "ZoneCallUnfinished", "ZoneFault", "open_link"]


def __getattr__(name: str) -> object:
    # The link is loaded when it is asked for: a zone that only serves has no use for an HTTP client.
    if name in __all__:
        from trunkline.zones import link  # noqa: PLC0415

        return getattr(link, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
