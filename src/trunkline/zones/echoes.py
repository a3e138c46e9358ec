"""
What a handler repeats of the secrets that it was given: taken out before its answer is kept or sent.

Only of the fields that the policy names. A name that merely tells of a secret may be wrong, and its value a word that
answers are made of.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Set
from typing import cast

from trunkline.jsontypes import Json, JsonObject
from trunkline.telemetry.redaction import Redaction, may_be_in
from trunkline.zones.faults import ZoneFault


def secrets_under(fields: Set[str], params: Json) -> Iterator[str]:
    """The texts that stand under one of these names, however deep."""
    match params:
        case dict():
            for name, value in params.items():
                if name in fields and isinstance(value, str):
                    yield value
                else:
                    yield from secrets_under(fields, value)
        case list():
            for value in params:
                yield from secrets_under(fields, value)
        case _:
            pass


async def without_echoes(perform: Callable[[], Awaitable[bytes]], secrets: tuple[str, ...]) -> bytes:
    """The JSON text of the result; raises a fault. Neither has these secrets in it."""
    try:
        result = await perform()
    except ZoneFault as fault:
        redaction = Redaction().beside(secrets)
        data = cast("JsonObject", redaction.value(fault.data))
        raise ZoneFault(fault.code, redaction.text(fault.message), data) from None
    # Hardly any answer has one, and to look for it in every form costs more than all the rest of a call.
    if any(may_be_in(result, secret) for secret in secrets):
        return Redaction().beside(secrets).body(result)
    return result
