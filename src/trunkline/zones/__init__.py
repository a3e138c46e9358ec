"""
The JSON-RPC contract between two zones: one that checks and authorises a task, and one that runs it.

    endpoint  a zone as a server: handlers behind one address, with a policy at its door
    link      a zone as its caller sees it: `await link.execute_task(params)`

What carries the bytes is a transport's business; neither side's code knows of it. The contract itself is in
docs/reference/zone-contract.md.
"""

from trunkline.zones.endpoint import Zone
from trunkline.zones.faults import ZoneFault
from trunkline.zones.link import Link, ZoneCallFailed, ZoneCallUnfinished, open_link

__all__ = ["Link", "Zone", "ZoneCallFailed", "ZoneCallUnfinished", "ZoneFault", "open_link"]
