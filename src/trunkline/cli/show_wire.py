"""One HTTP exchange with an agent, as `runs wire` and the demo print it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trunkline.cli.times import clock_time, parse_time

if TYPE_CHECKING:
    from trunkline.cli.answers import Exchange
    from trunkline.jsontypes import Json


def exchange_lines(exchange: Exchange) -> list[str]:
    """Request lines begin with `>`, response lines with `<`, as curl shows them."""
    request, response = exchange["request"], exchange["response"]
    at = clock_time(parse_time(exchange["started_at"]))
    lines = [f"{at} {exchange['step']} attempt {exchange['attempt']} ({exchange['duration_ms']:.0f} ms)"]
    lines += [f"> {request['method']} {request['url']}", *_message(">", request["headers"], request["body"])]
    if response is not None:
        lines += [f"< {response['status']}", *_message("<", response["headers"], response["body"])]
    if exchange["error"]:
        lines.append(f"! {_error(exchange['error'])}")
    return lines + [f"# {note}" for note in exchange["notes"] or ()]


def _error(error: Json) -> str:
    if isinstance(error, dict) and "message" in error:
        return f"{error.get('code', 'error')}: {error['message']}"
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def _message(mark: str, headers: Mapping[str, str], body: str | None) -> list[str]:
    text = [f"{name}: {value}" for name, value in headers.items()]
    if body:
        text += ["", *_readable(body).splitlines()]
    return [f"{mark} {line}".rstrip() for line in text]


def _readable(body: str) -> str:
    # What is not JSON, or was cut, is shown as it is.
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body
