"""
Why a command failed: what went wrong, and the command that fixes it.

    CliError          anything that ends a command, with its exit code
      ApiError        the server rejected the request: a problem+json
      ServerUnreachable      the server did not answer
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from trunkline.cli.exit_codes import Exit, exit_for_error, exit_for_status
from trunkline.cli.lazy_imports import lazy_module

if TYPE_CHECKING:
    from trunkline import errors
    from trunkline.api.resources.common import FindingResource, Problem
else:
    errors = lazy_module("trunkline.errors")


class Diagnostic(NamedTuple):
    """One thing that is wrong in an input, and where."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None

    def text(self, source: str | None) -> str:
        """`file:line:column: message`, the form that editors jump to."""
        position = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
        where = f"{source}{position}: " if source else ""
        path = f" ({self.path})" if self.path else ""
        return f"{where}{self.message}{path}"


class FollowInterrupted(Exception):
    """Ctrl-C while a run is followed; the text is the run's id."""


class CliError(Exception):
    """The command could not be carried out."""

    def __init__(
        self,
        what: str,
        *,
        fix: str | None = None,
        fix_command: str | None = None,
        exit_code: Exit = Exit.UNEXPECTED,
        diagnostics: Sequence[Diagnostic] = (),
        source: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        # The command in `fix`, if it has one that can be typed as it is.
        self.fix_command = fix_command
        self.exit_code = exit_code
        self.diagnostics = tuple(diagnostics)
        # The file that `diagnostics` are in.
        self.source = source

    def lines(self) -> list[str]:
        """The message as a person reads it."""
        if self.source and self.diagnostics:
            text = [
                f"error: {self.source} is not valid",
                *(f"  {p.text(self.source)}" for p in self.diagnostics),
            ]
        else:
            text = [f"error: {self.what}"]
            # The detail of the server usually contains the messages already.
            text += [
                f"  {diagnostic.text(None)}"
                for diagnostic in self.diagnostics
                if diagnostic.message not in self.what
            ]
        if self.fix:
            text.append(f"fix: {self.fix}")
        return text

    def as_problem(self) -> dict[str, object]:
        """The message as `--json` shows it."""
        problem: dict[str, object] = {"detail": self.what, "fix": self.fix, "exit_code": int(self.exit_code)}
        if self.fix_command is not None:
            problem["fix_command"] = self.fix_command
        if self.diagnostics:
            problem["errors"] = [diagnostic._asdict() for diagnostic in self.diagnostics]
        return problem


class ApiError(CliError):
    """The server refused, and said why."""

    def __init__(self, status: int, problem: Problem) -> None:
        self.status = status
        self.problem = problem
        title = problem.get("title") or f"HTTP {status}"
        detail = problem.get("detail")
        super().__init__(
            detail or title,
            fix=problem.get("fix"),
            fix_command=problem.get("fix_command"),
            exit_code=exit_for_status(status),
            diagnostics=[diagnostic_of(error) for error in problem.get("errors") or ()],
        )

    def as_problem(self) -> dict[str, object]:
        return {**self.problem, "exit_code": int(self.exit_code)}


class ServerUnreachable(CliError):
    """The server did not answer."""

    def __init__(self, url: str, reason: str, *, was_reached: bool = False) -> None:
        what, fix = (
            (
                f"The connection to {url} was lost before the response was complete: {reason}",
                "Check whether the request took effect, and see the server's log for the cause; then try again",
            )
            if was_reached
            else (
                f"Cannot connect to Trunkline at {url}: {reason}",
                "Start it with: trunkline up (or set another URL with --url or TRUNKLINE_URL)",
            )
        )
        super().__init__(what, fix=fix, exit_code=Exit.UNREACHABLE)


def diagnostic_of(error: FindingResource) -> Diagnostic:
    """A diagnostic from an answer's `errors` or `warnings`."""
    line, column = error.get("line"), error.get("column")
    return Diagnostic(
        path=str(error.get("path") or ""),
        message=str(error.get("message") or ""),
        line=line if isinstance(line, int) else None,
        column=column if isinstance(column, int) else None,
    )


@contextmanager
def explained(source: str | None = None) -> Generator[None]:
    """Turns errors from below the command line into its own; `source` is the file that was read."""
    try:
        yield
    except errors.TrunklineError as error:
        findings = error.findings if isinstance(error, errors.Invalid) else ()
        raise CliError(
            error.message,
            fix=error.fix,
            fix_command=error.fix_command,
            exit_code=exit_for_error(error),
            diagnostics=[Diagnostic(f.path, f.message, f.line, f.column) for f in findings],
            source=source,
        ) from error
