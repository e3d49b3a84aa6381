"""Instants: epoch milliseconds UTC, as they are on the wire, and aware datetimes, as they are to people."""

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["EPOCH", "instant_text", "to_datetime", "to_epoch_ms"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_MS: Final = timedelta(milliseconds=1)


def to_datetime(instant_ms: int) -> datetime:
    """Epoch milliseconds as an aware datetime in UTC."""
    return EPOCH + timedelta(milliseconds=instant_ms)


def to_epoch_ms(instant: datetime) -> int:
    """An aware datetime as whole epoch milliseconds; what is less than one is left out."""
    return (instant - EPOCH) // _MS


def instant_text(instant_ms: int, sep: str = "T") -> str:
    """An instant in ISO 8601, UTC, with milliseconds only where there are any."""
    text = to_datetime(instant_ms).replace(tzinfo=None)
    return text.isoformat(sep, "milliseconds" if instant_ms % 1_000 else "seconds") + "Z"
