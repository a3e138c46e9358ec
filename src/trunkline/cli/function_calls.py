"""
Answers to agents that wait for a function: `{id, name, response}`, with the id and the name that the question has.

    question's data   {"id": "call-1", "name": "pay", "args": {…}}, or a list of such
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError

if TYPE_CHECKING:
    from trunkline.cli.answers import InboxItem
    from trunkline.jsontypes import Json, JsonObject


def function_response(item: InboxItem, given: Json) -> JsonObject:
    """`given`: what the function returned, or the whole `{id?, name?, response}`."""
    if isinstance(given, dict) and "response" in given and given.keys() <= {"id", "name", "response"}:
        named, response = given, given["response"]
    else:
        named, response = {}, given
    call = _call_of(item, named)
    # An agent's framework takes an object only.
    result: Json = response if isinstance(response, dict) else {"result": response}
    return {"id": call["id"], "name": call["name"], "response": result}


def verdict(item: InboxItem, *, approved: bool) -> JsonObject:
    """Yes or no, as the function that asks for a confirmation returns it, or in words."""
    if calls_in(item["data"]):
        return {"data": function_response(item, {"confirmed": approved})}
    return {"text": "approved" if approved else "rejected", "data": {"approved": approved}}


def calls_in(data: Json) -> list[JsonObject]:
    candidates = data if isinstance(data, list) else [data]
    return [
        call
        for call in candidates
        if isinstance(call, dict) and isinstance(call.get("id"), str) and isinstance(call.get("name"), str)
    ]


def _call_of(item: InboxItem, named: JsonObject) -> JsonObject:
    calls = [
        call
        for call in calls_in(item["data"])
        if all(named.get(field) in (None, call[field]) for field in ("id", "name"))
    ]
    match calls:
        case [call]:
            return call
        case []:
            raise CliError(
                "The agent waits for no such function",
                fix=f"See what it asks: trunkline inbox show {item['id']}",
                exit_code=Exit.USAGE,
            )
        case _:
            names = ", ".join(f"{call['name']} ({call['id']})" for call in calls)
            raise CliError(
                f"The agent waits for several functions: {names}",
                fix='Say which: --function-response \'{"id": "…", "response": {…}}\'',
                exit_code=Exit.USAGE,
            )
