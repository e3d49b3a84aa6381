"""Durations as people read them; `parse_duration` is here, too, for the command line."""

from datetime import timedelta

__all__ = ["brief_duration", "format_duration", "parse_duration"]

_MINUTE_S = 60
_PRECISE_BELOW_S = 10


def parse_duration(text: str) -> timedelta:
    """`10s`, `5m`, `1h30m`, `250ms`, `2d`; a bare number is seconds. Raises ValueError that says how to write it."""
    # Imported when one is given: the jobs bring pydantic, which `--help` does without.
    from mainspring.jobs import durations

    return durations.parse_duration(text)


def format_duration(seconds: float) -> str:
    """A duration in at most two units, for people: `850 ms`, `4.2 s`, `3 m 20 s`, `2 d 4 h`."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s" if seconds < _PRECISE_BELOW_S else f"{seconds:.0f} s"
    whole = round(seconds)
    for unit, size, smaller, small in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def brief_duration(seconds: float) -> str:
    """A duration in one unit without a space, for columns: `850ms`, `4s`, `59m`, `2h`, `3d`; never negative."""
    if seconds < 1:
        return f"{max(0, int(seconds * 1000))}ms"
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
