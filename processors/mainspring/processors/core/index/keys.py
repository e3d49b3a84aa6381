"""Keys as bytes whose order is that of what they were made from, so that a table on disk sorts as the memory does.

A strategy's key is numbers, and integers may be compared with floats: each is the nearest double, in a form whose bytes
sort, and behind it what an integer is more or less than that. A shorter key that begins like a longer one comes first.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import inf
from struct import Struct
from typing import Final

__all__ = [
    "BEGINNING",
    "Numbers",
    "TimeKey",
    "decode_numbers",
    "decode_time_key",
    "encode_numbers",
    "encode_time_key",
    "encode_time_keys",
]

Numbers = tuple[int | float, ...]
"""What a strategy orders by."""

TimeKey = tuple[int, int, str]
"""An instant (epoch milliseconds), the job's `seq`, and its id: what falls due first is first."""

BEGINNING: Final[TimeKey] = (-(1 << 63), 0, "")
"""Before every time key."""

_DOUBLE = Struct(">d")
_BITS = Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_EXACT = 1 << 53
_MORE = b"\x01"
_END = b"\x00"
_EQUAL = 0x80
_TIME = Struct(">QQ")


def encode_numbers(key: Numbers) -> bytes:
    """The bytes of a key. An integer beyond every double counts as infinite."""
    return b"".join([_number(each) for each in key]) + _END


def decode_numbers(data: bytes, at: int) -> tuple[Numbers, int]:
    """A key that is equal to the one encoded at `at`, and where its bytes end."""
    key: list[int | float] = []
    while data[at : at + 1] == _MORE:
        (ordered,) = _BITS.unpack_from(data, at + 1)
        (value,) = _DOUBLE.unpack(_BITS.pack(ordered ^ _SIGN if ordered & _SIGN else ordered ^ _ALL))
        size = data[at + 9] - _EQUAL
        at += 10
        if size:
            rest = int.from_bytes(data[at : at + abs(size)], "big")
            at += abs(size)
            key.append(int(value) + (rest if size > 0 else rest - (1 << -8 * size)))
        else:
            key.append(value)
    return tuple(key), at + 1


def encode_time_key(key: TimeKey) -> bytes:
    """The bytes of a time key."""
    return _TIME.pack(key[0] + _SIGN, key[1]) + key[2].encode()


def encode_time_keys(prefix: bytes, keys: Iterable[TimeKey]) -> list[bytes]:
    """The bytes of many time keys, each behind a prefix."""
    pack = _TIME.pack
    return [prefix + pack(instant + _SIGN, seq) + job_id.encode() for instant, seq, job_id in keys]


def decode_time_key(data: bytes, at: int) -> TimeKey:
    """The time key that `data` ends with, from `at` on."""
    instant, seq = _TIME.unpack_from(data, at)
    return instant - _SIGN, seq, data[at + _TIME.size :].decode()


@lru_cache(maxsize=4_096)
def _number(value: float) -> bytes:
    # Priorities are few, and many jobs are due in the same millisecond. Equal numbers have equal bytes.
    try:
        nearest = float(value)
    except OverflowError:
        nearest = inf if value > 0 else -inf
    # Adding 0.0 makes one zero of two.
    (bits,) = _BITS.unpack(_DOUBLE.pack(nearest + 0.0))
    ordered = _MORE + _BITS.pack(bits ^ _ALL if bits & _SIGN else bits ^ _SIGN)
    if not isinstance(value, int) or -_EXACT <= value <= _EXACT or nearest in (inf, -inf):
        return ordered + bytes((_EQUAL,))
    rest = value - int(nearest)
    size = (rest.bit_length() + 7) // 8
    if rest >= 0:
        return ordered + bytes((_EQUAL + size,)) + rest.to_bytes(size, "big")
    return ordered + bytes((_EQUAL - size,)) + (rest + (1 << 8 * size)).to_bytes(size, "big")
