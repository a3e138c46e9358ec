"""The arguments and options that many commands share: one name, one form and one help text for the same thing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, Token

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.rest.client import Client
from trunkline.durations import format_duration, parse_duration

if TYPE_CHECKING:
    from trunkline import settings
    from trunkline.settings import Settings
else:
    settings = lazy_module("trunkline.settings")

DEFAULT_URL = "http://127.0.0.1:8000"
# Not an option: other processes can read the command line.
API_KEY = "TRUNKLINE_API_KEY"


def at_least_one(_type: object, value: object) -> None:
    """A validator. Those of cyclopts are in modules that few commands need."""
    if isinstance(value, int) and value < 1:
        raise ValueError("Must be at least 1.")


def read_duration(_type: object, tokens: Sequence[Token]) -> timedelta:
    """
    A converter: the form of durations is the same in flags, settings and workflows.

    The parser puts the name of the option before the errors.
    """
    (token,) = tokens
    try:
        duration = parse_duration(token.value)
    except ValueError as error:
        raise ValueError(f"{error}.") from error
    if not duration:
        raise ValueError("it must be greater than zero.")
    return duration


def check_at_most(flag: str, duration: timedelta | None, maximum: timedelta) -> None:
    if duration is not None and duration > maximum:
        raise CliError(
            f"{flag} {format_duration(duration)} is too long",
            fix=f"Use {format_duration(maximum)} or less",
            exit_code=Exit.USAGE,
        )


JsonFlag = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")]
# An option that can be repeated, each time with one key=value.
Pairs = Annotated[
    tuple[str, ...], Parameter(negative="", consume_multiple=False, show_default=False, metavar="KEY=VALUE")
]
Labels = Annotated[
    tuple[str, ...],
    Parameter(name="--label", negative="", consume_multiple=False, show_default=False, metavar="KEY:VALUE"),
]
InputPairs = Annotated[Pairs, Parameter(name=("--input", "-i"))]
Tags = Annotated[Pairs, Parameter(metavar="TAG")]
Skills = Annotated[Pairs, Parameter(metavar="SKILL")]
Origins = Annotated[Pairs, Parameter(metavar="ORIGIN")]
Publications = Annotated[Pairs, Parameter(metavar="PUBLICATION")]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
# An older name of an option. It keeps working, and help does not show it.
Hidden = Parameter(show=False, help="An older name of another option.")
Duration = Annotated[
    timedelta | None, Parameter(converter=read_duration, n_tokens=1, accepts_keys=False, metavar="DURATION")
]
Time = Annotated[str | None, Parameter(metavar="TIME")]
RunArgument = Annotated[str, Parameter(name="RUN", help="ID of the run.")]
DefinitionFiles = Annotated[
    tuple[str, ...], Parameter(name="FILE", help="YAML or JSON files. - reads stdin.", negative="")
]
OnlyStep = Annotated[str | None, Parameter(name="STEP", help="Show only this step.")]
AgentArgument = Annotated[str, Parameter(name="AGENT", help="Name or ID of the agent.")]
Count = Annotated[int, Parameter(validator=at_least_one)]
Limit = Annotated[int, Parameter(validator=at_least_one, help="Maximum number of entries.")]
LimitOrAll = Annotated[
    int | None, Parameter(validator=at_least_one, help="Maximum number of entries. Default: all.")
]
Cursor = Annotated[
    str | None, Parameter(help="Continue where an earlier list ended: its next_cursor.", show_default=False)
]
TextAnswer = Annotated[
    str | None,
    Parameter(
        metavar="TEXT", help="Answer as text. - or @FILE reads it, which keeps it out of the shell history."
    ),
]
DataAnswer = Annotated[
    str | None, Parameter(metavar="JSON", help="Answer as JSON. @FILE reads it from a file.")
]
JsonText = Annotated[str | None, Parameter(metavar="JSON")]
FileText = Annotated[str | None, Parameter(metavar="FILE")]
FolderText = Annotated[str | None, Parameter(metavar="FOLDER")]
Variable = Annotated[str | None, Parameter(metavar="VARIABLE")]
PartsAnswer = Annotated[
    str | None,
    Parameter(
        metavar="FILE",
        help="JSON file with a list of message parts, for agents that need more than text or data.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class Server:
    """Where the server is, and how its answers are printed."""

    url: Annotated[
        str, Parameter(name="--url", env_var="TRUNKLINE_URL", metavar="URL", help="URL of the server.")
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
        str | None,
        Parameter(
            metavar="FOLDER", help="Folder of the database. Default: the folder that `up` would use here."
        ),
    ] = None
    store: Annotated[
        str | None,
        Parameter(
            metavar="URL", help="sqlite:///… or postgresql://…. Default: the store that `up` would use here."
        ),
    ] = None
    json: JsonFlag = False

    def settings(self) -> Settings:
        flags = {"data": self.data, "store": self.store}
        with explained():
            return settings.load_settings({name: value for name, value in flags.items() if value is not None})


STORE_HERE = StorePlace()
