"""
The golden files of the cases, the same for every transport. `python -m tests.contract.zones.golden` writes them.

The test next to this file fails while one of them is not as the program is; this is the way to agree to a change, and
the difference shows in review.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import uvloop
from tests.contract.zones.cases import CASES, FIXED
from tests.contract.zones.transports import PayloadExchange, http

from trunkline.telemetry.logs import configure_logs

FOLDER = Path(__file__).parents[2] / "golden" / "zones"

_MADE_UP = re.compile(
    rf"\b(?!{FIXED})[0-9a-f]{{8}}-[0-9a-f]{{4}}-[47][0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}\b"
)


def path_of(case: str) -> Path:
    return FOLDER / f"{case}.json"


def text_of(exchanges: Sequence[PayloadExchange]) -> str:
    """A golden file. Each id that was made up on the way has a number, in the order in which they appear."""
    shown = [{"request": _shown(request), "response": _shown(response)} for request, response in exchanges]
    text = msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()
    numbers = {made_up: number for number, made_up in enumerate(dict.fromkeys(_MADE_UP.findall(text)), 1)}
    return _MADE_UP.sub(lambda found: f"<id {numbers[found[0]]}>", text) + "\n"


def _shown(body: bytes) -> str:
    return body.decode(errors="backslashreplace")


async def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        async with http(Path(folder)) as transport:
            for name, case in CASES.items():
                transport.forget()
                await case(transport)
                path_of(name).write_text(text_of(transport.here))


if __name__ == "__main__":
    configure_logs("warning", "console")
    uvloop.run(write())
