"""Who calls a zone, and how that is known."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

# By a signed token, by a client certificate, by the process that started us, by the platform in front of us (AWS has
# checked who it is), or by nothing at all: whoever reaches the address.
KnownBy: TypeAlias = Literal["token", "certificate", "parent", "platform", "address"]


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    known_by: KnownBy


ANYBODY = Caller(name="anybody", known_by="address")
