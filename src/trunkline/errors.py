"""
The errors that Trunkline tells its users about, as one tree.

    TrunklineError              anything we can explain
      NotFound                  the thing named does not exist
      Conflict                  the state does not allow it
        AlreadyExists
        StaleVersion            If-Match did not match
        NotReady                something has to be done first; `findings` say what
        DataInUse               another process owns the data folder
      Invalid                   the input is wrong; `findings` say where
      NotAllowed                the caller or the configuration does not allow it
      Unavailable               a dependency is away; nothing is lost, try again
      ConfigurationError        a setting is missing or makes no sense
        WrongSchema             the database is of an earlier or a later version

Each edge (REST, CLI) turns them into its own codes by one table. A failed call of an agent is not an exception
but a value: `messages.StepError`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with an input, and where."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    # The required property that the object at `path` lacks, where that is what is wrong.
    missing: str | msgspec.UnsetType = msgspec.UNSET


class TrunklineError(Exception):
    """Something went wrong."""

    # What the user can do about it, unless the place that raises knows better.
    fix: str = "Look up the correlation id of this request in the server's log."
    # The command of the command line in `fix`, if it has one that can be typed as it is.
    fix_command: str | None = None

    def __init__(
        self, message: str | None = None, *, fix: str | None = None, fix_command: str | None = None
    ) -> None:
        super().__init__(message or type(self).__doc__ or "")
        if fix is not None:
            self.fix = fix
            self.fix_command = fix_command

    @property
    def message(self) -> str:
        return str(self.args[0])


class NotFound(TrunklineError):
    """The resource does not exist."""

    fix = "Check the name or id against the list of existing resources."


class Conflict(TrunklineError):
    """The present state does not allow this."""

    fix = "Read the current state, then decide whether the request still applies."


class AlreadyExists(Conflict):
    """The name is taken."""

    fix = "Choose another name, or update the existing resource."


class StaleVersion(Conflict):
    """It was changed by someone else in the meantime."""

    fix = "Read the resource again, apply your change to it, and send its new ETag in If-Match."


class NotReady(Conflict):
    """Something has to be done first."""

    fix = "Meet the missing requirements first, or override them with a reason."

    def __init__(
        self, message: str | None = None, *, findings: Sequence[Finding] = (), fix: str | None = None
    ) -> None:
        super().__init__(message, fix=fix)
        self.findings = tuple(findings)


class DataInUse(Conflict):
    """Another process uses this data folder."""

    fix = "Stop the other process, or choose another folder with --data."


class Invalid(TrunklineError):
    """The input is not valid."""

    fix = "Correct the values that the message names and send the request again."

    def __init__(
        self, message: str | None = None, *, findings: Sequence[Finding] = (), fix: str | None = None
    ) -> None:
        super().__init__(message, fix=fix)
        self.findings = tuple(findings)


class NotAllowed(TrunklineError):
    """This is not allowed."""

    fix = "Ask the operator for access."


class Unavailable(TrunklineError):
    """Something that Trunkline depends on is away."""

    fix = "Nothing is lost. See /readyz for the missing dependency, then try again."


class ConfigurationError(TrunklineError):
    """A setting is missing or makes no sense."""

    fix = "Correct the setting and start the process again."


class WrongSchema(ConfigurationError):
    """The database is of another version than this program."""

    fix = "Run: trunkline db upgrade"
    fix_command = "trunkline db upgrade"
