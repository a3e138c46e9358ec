"""An alias of `trunkline.zones.client`, under the import path that it had first."""

from trunkline.zones.client import Link, ZoneCallFailed, ZoneCallUnfinished, open_link

__all__ = ["Link", "ZoneCallFailed", "ZoneCallUnfinished", "open_link"]
