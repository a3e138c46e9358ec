"""Logs what a program writes to its standard error: cut, rate-limited, and without the secrets that it got."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import monotonic

import msgspec
import structlog

from trunkline.jsontypes import Json, decode
from trunkline.telemetry import log_events
from trunkline.telemetry.redaction import Redaction, is_secret_name
from trunkline.transports.base import SECRETS_SENT
from trunkline.transports.lines import LineReader

log = structlog.stdlib.get_logger()

# As bodies are cut in the log.
_SHOWN_CHARACTERS = 4_096
# Much more than that, so that a secret which lies across the cut is found.
_MAX_LINE_BYTES = 64 * 1_024
# A program that says more than this has nothing to say; its work is not held up by our log.
_MAX_LINES = 500
_WINDOW_SECONDS = 10.0
# Of the latest requests: their secrets may be repeated a while after they were answered.
_MAX_SECRETS = 256


class ProgramLog:
    def __init__(self, program: str, secrets: Iterable[str]) -> None:
        self._program = program
        self._given = tuple(secrets)
        self._recent: deque[str] = deque(maxlen=_MAX_SECRETS)
        self._redaction = Redaction.of(*self._given)
        self._lines = LineReader(_MAX_LINE_BYTES)
        self._window_ends = 0.0
        self._logged = self._dropped = 0

    def hide_secrets_of(self, body: bytes) -> None:
        """
        What stands in a request under a telling name, or was put there as a secret, does not appear from now on.
        """
        for secret in (*_secrets_in(body), *SECRETS_SENT.get()):
            if secret not in self._recent:
                self._recent.append(secret)

    def feed(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._log_line(line.text)

    def end(self) -> None:
        for line in self._lines.end():
            self._log_line(line.text)
        self._log_dropped()

    def log_ignored_line(self, line: bytes, reason: str) -> None:
        """A line of its standard output that answers nothing."""
        if self._may_log():
            log.warning(
                log_events.PROGRAM_LINE_IGNORED, program=self._program, reason=reason, line=self._shown(line)
            )

    def _log_line(self, line: bytes) -> None:
        if line.strip() and self._may_log():
            log.info(log_events.PROGRAM_OUTPUT, program=self._program, line=self._shown(line))

    def _shown(self, line: bytes) -> str:
        self._redaction.learn(tuple(self._recent))
        return self._redaction.text(line[:_MAX_LINE_BYTES].decode(errors="replace"))[:_SHOWN_CHARACTERS]

    def _may_log(self) -> bool:
        now = monotonic()
        if now >= self._window_ends:
            self._log_dropped()
            self._window_ends = now + _WINDOW_SECONDS
            self._logged = 0
        self._logged += 1
        if self._logged <= _MAX_LINES:
            return True
        self._dropped += 1
        return False

    def _log_dropped(self) -> None:
        if self._dropped:
            log.warning(log_events.PROGRAM_LINES_DROPPED, program=self._program, lines=self._dropped)
            self._dropped = 0


def _secrets_in(body: bytes) -> list[str]:
    """Every text under a telling name, however deep it stands."""
    try:
        left: list[tuple[Json, bool]] = [(decode(body), False)]
    except (msgspec.DecodeError, RecursionError):
        # Then the program cannot read it either.
        return []
    found: list[str] = []
    while left:
        value, is_secret = left.pop()
        match value:
            case dict():
                left += [(item, is_secret or is_secret_name(name)) for name, item in value.items()]
            case list():
                left += [(item, is_secret) for item in value]
            case str() if is_secret:
                found.append(value)
            case _:
                pass
    return found
