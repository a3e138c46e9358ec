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
        SignatureRefused        a webhook is not signed as its trigger requires
      Unavailable               a dependency is away; nothing is lost, try again
      Overloaded                too much of this work is in progress; `retry_after_seconds` says when to try again
        TooManyRequests         of this caller alone
      ConfigurationError        a setting is missing or makes no sense
        WrongSchema             the database is of an earlier or a later version

Each edge (REST, CLI) turns them into its own codes by one table. A failed call of an agent is not an exception
but a value: `messages.StepError`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One invalid value of an input, and its position."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    # The required property that is missing from the object at `path`, if that is the problem.
    missing: str | msgspec.UnsetType = msgspec.UNSET


class TrunklineError(Exception):
    """Something went wrong."""

    # The default fix. An error can be raised with a more specific one.
    fix: str = "Look up the correlation id of this request in the server's log."
    # The command in `fix`, if there is one that can be run as is.
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

    fix = "Check the name or id, or list the existing resources."


class Conflict(TrunklineError):
    """The current state does not allow this operation."""

    fix = "Read the current state, then decide whether the request still applies."


class AlreadyExists(Conflict):
    """The name is already in use."""

    fix = "Choose another name, or update the existing resource."


class StaleVersion(Conflict):
    """The resource was changed in the meantime."""

    fix = "Read the resource again, apply your change to it, and send its new ETag in If-Match."


class NotReady(Conflict):
    """Some requirements are not met yet."""

    fix = "Meet the missing requirements first, or override them with a reason."

    def __init__(
        self, message: str | None = None, *, findings: Sequence[Finding] = (), fix: str | None = None
    ) -> None:
        super().__init__(message, fix=fix)
        self.findings = tuple(findings)


class DataInUse(Conflict):
    """Another process is using this data folder."""

    fix = "Stop the other process, or choose another folder with --data."


class Invalid(TrunklineError):
    """The input is invalid."""

    fix = "Correct the values that the message names and send the request again."

    def __init__(
        self, message: str | None = None, *, findings: Sequence[Finding] = (), fix: str | None = None
    ) -> None:
        super().__init__(message, fix=fix)
        self.findings = tuple(findings)


class NotAllowed(TrunklineError):
    """This operation is not allowed."""

    fix = "Use an API key whose role allows this operation, or ask an administrator for one."


class SignatureRefused(NotAllowed):
    """The signature of this delivery is missing, wrong or outdated."""

    fix = "Sign the delivery with the secret of the trigger, and check the clock of the sender."


class Overloaded(TrunklineError):
    """Too many requests of this kind are in progress."""

    fix = "Try again after the number of seconds in Retry-After."
    retry_after_seconds = 2


class TooManyRequests(Overloaded):
    """Too many requests of this caller are in progress."""


class Unavailable(TrunklineError):
    """A dependency of Trunkline is unavailable."""

    fix = "Nothing is lost. See /readyz for the missing dependency, then try again."


class ConfigurationError(TrunklineError):
    """A setting is missing or invalid."""

    fix = "Correct the setting and start the process again."


class WrongSchema(ConfigurationError):
    """The database schema has another version than this program."""

    fix = "Run: trunkline db upgrade"
    fix_command = "trunkline db upgrade"
