"""Instants: the core reads no clock, so every call is told what time it is."""

from typing import NamedTuple

__all__ = ["Now", "Wake"]


class Now(NamedTuple):
    """The present: `wall_ms` (epoch UTC) for due times, `mono_ms` (never set back) for leases and renewals."""

    wall_ms: int
    mono_ms: int


class Wake(NamedTuple):
    """The earliest instant at which a timer has work, on either clock; `None`: that clock has none."""

    wall_ms: int | None
    mono_ms: int | None
