"""Durations as people write them."""

import re
from datetime import timedelta

__all__ = ["parse_duration"]

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def parse_duration(text: str) -> timedelta:
    """`10s`, `5m`, `1h30m`, `250ms`, `2d`; a bare number is seconds. Raises ValueError that says how to write it."""
    compact = text.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(?:\.\d+)?", compact):
        compact += "s"
    parts = _PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise ValueError(f"{text!r} is not a duration: write it like 10s, 5m, 1h30m, 250ms or 2d")
    try:
        return timedelta(milliseconds=sum(float(number) * _UNITS_MS[unit] for number, unit in parts))
    except OverflowError:
        raise ValueError(f"{text!r} is too long: at most about 2.7 million years") from None
