"""Durations, instants and names as users give them, as they are on the wire."""

import math
from datetime import datetime, timedelta
from typing import TypeVar

from mainspring.client.errors import InvalidScheduleError
from mainspring.jobs.durations import parse_duration
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.epoch import to_epoch_ms
from mainspring.schemas.named import NamedInt

__all__ = ["duration_ms", "instant_ms", "named", "refuse"]

N = TypeVar("N", bound=NamedInt)

_MS = timedelta(milliseconds=1)


def refuse(field: str, message: str) -> InvalidScheduleError:
    """The error for a field that cannot be meant like this; `message` goes on behind the name of the field."""
    return InvalidScheduleError(RejectCode.INVALID_FIELD, field, f"{field} {message}")


def duration_ms(field: str, value: str | float | timedelta) -> int:
    """Whole milliseconds. A text is like `1h30m`, a number is seconds. Raises `InvalidScheduleError`."""
    if isinstance(value, str):
        try:
            value = parse_duration(value)
        except ValueError as error:
            raise refuse(field, f"is no duration: {error}") from None
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise refuse(field, f"must be a text like '15m', seconds or a timedelta, not {value!r}")
    if not isinstance(value, timedelta):
        if not math.isfinite(value):
            raise refuse(field, f"must be a finite number of seconds, not {value!r}")
        try:
            value = timedelta(seconds=value)
        except OverflowError:
            raise refuse(field, f"is too long: {value!r} seconds") from None
    if value % _MS:
        raise refuse(field, f"must be a whole number of milliseconds, and is {value.total_seconds():g} s")
    return value // _MS


def instant_ms(field: str, value: datetime) -> int:
    """Epoch milliseconds UTC of an aware datetime, whole ones. Raises `InvalidScheduleError`."""
    if not isinstance(value, datetime):
        raise refuse(field, f"must be a datetime with a time zone, not {value!r}")
    if value.utcoffset() is None:
        raise refuse(field, f"must have a time zone, and {value.isoformat()} has none: say which, as in tzinfo=UTC")
    return to_epoch_ms(value)


def named(kind: type[N], field: str, value: N | str) -> N:
    """A policy by its enum or its name: `Overlap.BUFFER_ONE`, `buffer_one`, `buffer-one`.

    Raises `InvalidScheduleError`.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        found = kind.__members__.get(value.strip().upper().replace("-", "_"))
        if found is not None:
            return found
    names = ", ".join(member.name.lower() for member in kind)
    raise refuse(field, f"must be one of {names}, not {value!r}")
