"""The options that many commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from trunkline.cli.client import Client

DEFAULT_URL = "http://127.0.0.1:8000"

JsonFlag = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")]
# An option that is given as often as needed, each time with one key=value.
Pairs = Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=False, show_default=False)]
InputPairs = Annotated[Pairs, Parameter(name=("--input", "-i"))]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
RunArgument = Annotated[str, Parameter(name="RUN", help="The run's id.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Server:
    """Where the server is, and how its answers are printed."""

    url: Annotated[
        str, Parameter(name="--url", env_var="TRUNKLINE_URL", help="The address of the server.")
    ] = DEFAULT_URL
    json: JsonFlag = False

    def client(self) -> Client:
        return Client(self.url)


HERE = Server()
