"""The options that many commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.client import Client
from trunkline.cli.failures import explained
from trunkline.cli.lazy_imports import lazy_module

if TYPE_CHECKING:
    from trunkline import settings
    from trunkline.settings import Settings
else:
    settings = lazy_module("trunkline.settings")

DEFAULT_URL = "http://127.0.0.1:8000"
# Not an option: a command line is no place for a secret.
API_KEY = "TRUNKLINE_API_KEY"

JsonFlag = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")]
# An option that is given as often as needed, each time with one key=value.
Pairs = Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=False, show_default=False)]
InputPairs = Annotated[Pairs, Parameter(name=("--input", "-i"))]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
RunArgument = Annotated[str, Parameter(name="RUN", help="The run's id.")]
OnlyStep = Annotated[str | None, Parameter(name="STEP", help="Only this step's.")]
AgentArgument = Annotated[str, Parameter(name="AGENT", help="The agent's name or id.")]


def at_least_one(_type: object, value: object) -> None:
    """A validator; those of cyclopts are modules that few commands need."""
    if isinstance(value, int) and value < 1:
        raise ValueError("Must be >= 1.")


Count = Annotated[int, Parameter(validator=at_least_one)]


@Parameter(name="*")
@dataclass(frozen=True)
class Server:
    """Where the server is, and how its answers are printed."""

    url: Annotated[
        str, Parameter(name="--url", env_var="TRUNKLINE_URL", help="The address of the server.")
    ] = DEFAULT_URL
    json: JsonFlag = False

    def client(self) -> Client:
        return Client(self.url, api_key=os.environ.get(API_KEY))


HERE = Server()


@Parameter(name="*")
@dataclass(frozen=True)
class StorePlace:
    """Which store a command works on without a server, and how it prints."""

    data: Annotated[
        str | None, Parameter(help="The folder of the database. Default: the one that `up` would use here.")
    ] = None
    store: Annotated[
        str | None,
        Parameter(help="sqlite:///… or postgresql://…. Default: the one that `up` would use here."),
    ] = None
    json: JsonFlag = False

    def settings(self) -> Settings:
        flags = {"data": self.data, "store": self.store}
        with explained():
            return settings.load_settings({name: value for name, value in flags.items() if value is not None})


STORE_HERE = StorePlace()
