"""Times as people read them: the server's RFC 3339 texts, in the reader's own time zone."""

from __future__ import annotations

from datetime import datetime, timedelta


def parse_time(value: object) -> datetime | None:
    """A time from an answer."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    return None


def clock_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%H:%M:%S") if moment else ""


def date_time(value: object) -> str:
    moment = parse_time(value)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def duration_text(duration: timedelta) -> str:
    seconds = max(0.0, duration.total_seconds())
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m"


def duration_between(start: object, end: object) -> str:
    """How long it took, or nothing while it is not over."""
    first, last = parse_time(start), parse_time(end)
    return duration_text(last - first) if first and last else ""
