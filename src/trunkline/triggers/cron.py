"""
Cron expressions with daylight saving time.

`cronsim` knows what an expression means on a calendar; which instants these times are is decided here. If the hour
field is `*`, the expression counts real time: every hour that passes has its firings. Any other expression names times
of day, so each fires once a day: a time that the clocks skip fires when they have been set forward, and a time that
they show twice fires at the first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim, CronSimError

from trunkline.clock import Instant

MAX_CHARACTERS = 200

_FIELDS = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
_ALLOWED = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, such as MON-FRI, FRIL (without a name: 5L) or MON#1",
}
_HOUR_OF_FIVE = 1
_ANY_DAY = datetime(2026, 1, 1)  # noqa: DTZ001 - a time of a calendar, not an instant
_SECOND = timedelta(seconds=1)


class CronError(ValueError):
    """Why a text is not a cron expression; the column counts from 1."""

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


def check_cron(expression: str) -> None:
    """Raises `CronError`."""
    if len(expression) > MAX_CHARACTERS:
        raise CronError(f"a cron expression must have at most {MAX_CHARACTERS} characters")
    parts = expression.split()
    if len(parts) not in (5, 6):
        raise CronError(
            f"a cron expression has 5 fields (minute hour day-of-month month day-of-week), or 6 with seconds first, "
            f"but this one has {len(parts)}"
        )
    try:
        CronSim(expression, _ANY_DAY)
    except (CronSimError, ValueError) as exc:
        raise _explained(expression, parts, str(exc)) from exc


def _explained(expression: str, parts: list[str], problem: str) -> CronError:
    names = _FIELDS[-len(parts) :]
    name = problem.removeprefix("Bad ")
    if name not in names:
        return CronError(f"'{expression}' is not a valid cron expression: {problem}")
    place = names.index(name)
    column = 1
    for part in parts[:place]:
        column = expression.index(part, column - 1) + len(part) + 1
    column = expression.index(parts[place], column - 1) + 1
    return CronError(f"'{parts[place]}' is not a valid {name}; use {_ALLOWED[name]}", column)


class CronOccurrences:
    """The instants that an expression names in a time zone."""

    def __init__(self, expression: str, zone: tzinfo) -> None:
        self._expression = expression
        self._zone = zone
        parts = expression.split()
        self._counts_real_time = parts[_HOUR_OF_FIVE + len(parts) - 5] == "*"

    def next(self, after: Instant) -> Instant | None:
        """The first one later than `after`; None: there is none within fifty years."""
        local = datetime.fromtimestamp(after // 1_000_000, self._zone)
        times = CronSim(self._expression, local if self._counts_real_time else local.replace(tzinfo=None))
        for time in times:
            found = self._instant(time)
            if found > after:
                return found
        return None

    def last(self, until: Instant) -> Instant | None:
        """The last one at `until` or before."""
        local = datetime.fromtimestamp(until // 1_000_000, self._zone) + _SECOND
        if not self._counts_real_time:
            # In the second pass of an hour that comes twice, the later times of the first pass are over, too.
            local = (local + _repeated(local)).replace(tzinfo=None)
        for time in CronSim(self._expression, local, reverse=True):
            found = self._instant(time)
            if found <= until:
                return found
        return None

    def _instant(self, time: datetime) -> Instant:
        if time.tzinfo is None:
            time = time.replace(tzinfo=self._zone, fold=0)
            utc = time.astimezone(UTC)
            if utc.astimezone(self._zone).replace(tzinfo=None) != time.replace(tzinfo=None):
                utc = _end_of_gap(time, self._zone)
        else:
            utc = time.astimezone(UTC)
        return Instant(int(utc.timestamp()) * 1_000_000)


def _repeated(local: datetime) -> timedelta:
    """How long the stretch is that the clocks show a second time, if this time is in it."""
    first, second = local.replace(fold=0).utcoffset(), local.replace(fold=1).utcoffset()
    if first is None or second is None or local.fold == 0:
        return timedelta(0)
    return max(first - second, timedelta(0))


def _end_of_gap(time: datetime, zone: tzinfo) -> datetime:
    """The instant at which the clocks skip this local time."""
    # Read with the offset after the change it is too early, with the one before too late.
    low, high = (int(time.replace(fold=fold).astimezone(UTC).timestamp()) for fold in (1, 0))
    before = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)
