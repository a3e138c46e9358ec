"""
HTTP exchanges with agents, as `runs wire` and the demo print them.

Request lines begin with `>`, response lines with `<`, as curl shows them; where the agent has called Trunkline (a push)
it is the other way round. `!` is what went wrong, `#` what is worth knowing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from trunkline.cli.rendering.output import harmless, on_terminal, print_text
from trunkline.cli.rendering.times import clock_time, parse_time

if TYPE_CHECKING:
    from trunkline.api.resources.exchanges import ExchangeResource, FrameResource
    from trunkline.jsontypes import Json

# Requests to Trunkline.
_INCOMING = frozenset({"push", "caller"})
_STYLES = {">": "cyan", "<": "green", "!": "red", "#": "yellow"}


def print_exchanges(exchanges: Iterable[ExchangeResource]) -> None:
    """With an empty line between two; in colours on a terminal."""
    blocks = [exchange_lines(exchange) for exchange in exchanges]
    if not on_terminal():
        print_text("\n\n".join("\n".join(lines) for lines in blocks))
        return
    from rich.console import Console  # noqa: PLC0415  (rich is for terminals)
    from rich.text import Text  # noqa: PLC0415  (as above)

    console = Console(highlight=False)
    for number, lines in enumerate(blocks):
        if number:
            console.print()
        for line in lines:
            console.print(Text(line, style=_STYLES.get(line[:1], "bold")), soft_wrap=True)


def exchange_lines(exchange: ExchangeResource) -> list[str]:
    request, response = exchange["request"], exchange["response"]
    asks, answers = "<>" if exchange.get("kind") in _INCOMING else "><"
    lines = [
        _headline(exchange),
        f"{asks} {request['method']} {request['url']}",
        *_message(asks, request["headers"], request["body"]),
    ]
    if response is not None:
        frames = exchange.get("frames")
        body = None if frames else response["body"]
        lines += [f"{answers} {response['status']}", *_message(answers, response["headers"], body)]
        lines += _frames(answers, frames or ())
    if exchange["error"]:
        lines.append(f"! {_error(exchange['error'])}")
    lines += [f"# {note}" for note in exchange["notes"] or ()]
    return [harmless(line) for line in lines]


def _headline(exchange: ExchangeResource) -> str:
    at = clock_time(parse_time(exchange["started_at"]))
    frames = exchange.get("frames")
    took = f"{exchange['duration_ms']:,.0f} ms"
    if frames:
        took += f", {len(frames)} event{'s' * (len(frames) != 1)}"
    # The first message of a caller belongs to no step.
    whose = f"{exchange['step']} attempt {exchange['attempt']}: " if exchange["step"] else ""
    return f"{at} {whose}{exchange.get('kind', 'send')} ({took})"


def _error(error: Json) -> str:
    if isinstance(error, dict) and "message" in error:
        return f"{error.get('code', 'error')}: {error['message']}"
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def _message(mark: str, headers: Mapping[str, str], body: str | None) -> list[str]:
    text = [f"{name}: {value}" for name, value in headers.items()]
    if body:
        text += ["", *_readable(body).splitlines()]
    return [f"{mark} {line}".rstrip() for line in text]


def _frames(mark: str, frames: Iterable[FrameResource]) -> list[str]:
    """One event a line, with the time at which it came: a stream is read from top to bottom."""
    lines = [f"{mark} +{frame['at_ms']:,.0f} ms  {' '.join(frame['data'].splitlines())}" for frame in frames]
    return [mark, *lines] if lines else []


def _readable(body: str) -> str:
    # What is not JSON, or was cut, is shown as it is.
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body
