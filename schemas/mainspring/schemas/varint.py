"""Avro's integers: zigzag, seven bits a byte, low bits first.

Timestamps, counters and lengths repeat (a batch is decided at one instant), so both directions remember what they
computed last in bounded dictionaries; the compiled codecs look there before they call in.
"""

from mainspring.schemas.errors import SchemaError

__all__ = [
    "INSTANTS",
    "INTS",
    "LENGTHS",
    "LONGS",
    "MalformedError",
    "int_bytes",
    "length_bytes",
    "long_bytes",
    "read_instant",
    "read_int",
    "read_length",
    "read_long",
]

MEMO_SIZE = 8192
"""Entries that a memo holds before it starts anew: enough for a batch, small enough for the processor's cache."""

_MORE = 128
"""Set in every byte but the last."""
_LONG_MAX_BYTES = 10
_INSTANT_BYTES = 6
_LENGTHS_SIZE = 1024

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1


class MalformedError(SchemaError):
    """Bytes that break a rule of Avro's binary encoding."""


def _pack(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag >= _MORE:
        out.append(zigzag & 127 | _MORE)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_SMALL = {number: _pack(number) for number in range(-64, 1024)}

INTS: dict[int, bytes] = dict(_SMALL)
LONGS: dict[int, bytes] = dict(_SMALL)
INSTANTS: dict[bytes, int] = {}
"""Six bytes, the length of an instant in milliseconds until 2039, to their value. No integer is a prefix of another."""

LENGTHS: tuple[bytes, ...] = tuple(_pack(number) for number in range(_LENGTHS_SIZE))


def long_bytes(number: int) -> bytes:
    """Encodes a 64-bit integer. Raises `OverflowError` beyond 64 bits."""
    if not _LONG_MIN <= number <= _LONG_MAX:
        raise OverflowError(number)
    return _remember(LONGS, number)


def int_bytes(number: int) -> bytes:
    """Encodes a 32-bit integer. Raises `OverflowError` beyond 32 bits."""
    if not _INT_MIN <= number <= _INT_MAX:
        raise OverflowError(number)
    return _remember(INTS, number)


def length_bytes(length: int) -> bytes:
    """Encodes the length of a string, of bytes, or of an array block."""
    return LENGTHS[length] if length < _LENGTHS_SIZE else _pack(length)


def _remember(memo: dict[int, bytes], number: int) -> bytes:
    packed = _pack(number)
    if len(memo) >= MEMO_SIZE:
        memo.clear()
        memo.update(_SMALL)
    memo[number] = packed
    return packed


def read_long(data: bytes, index: int) -> tuple[int, int]:
    """Decodes the integer at `index`; returns it and the index behind it.

    Raises `IndexError` where the bytes end first and `MalformedError` for more than 64 bits.
    """
    # Straight on for up to three bytes, which nearly all have that no caller has looked up: the loop takes longer.
    zigzag = data[index]
    if zigzag < _MORE:
        return (zigzag >> 1) ^ -(zigzag & 1), index + 1
    second = data[index + 1]
    zigzag = zigzag & 127 | (second & 127) << 7
    if second < _MORE:
        return (zigzag >> 1) ^ -(zigzag & 1), index + 2
    third = data[index + 2]
    zigzag |= (third & 127) << 14
    if third < _MORE:
        return (zigzag >> 1) ^ -(zigzag & 1), index + 3
    index, shift = index + 3, 21
    while True:
        byte = data[index]
        index += 1
        zigzag |= (byte & 127) << shift
        if byte < _MORE:
            break
        shift += 7
        if shift == 7 * _LONG_MAX_BYTES:
            raise MalformedError("an integer of more than ten bytes")
    if zigzag >> 64:
        raise MalformedError("an integer of more than 64 bits")
    return (zigzag >> 1) ^ -(zigzag & 1), index


def read_int(data: bytes, index: int) -> tuple[int, int]:
    """Decodes the 32-bit integer at `index`, as `read_long` does; `MalformedError` for more than 32 bits."""
    number, index = read_long(data, index)
    if not _INT_MIN <= number <= _INT_MAX:
        raise MalformedError(f"{number} does not fit in 32 bits")
    return number, index


def read_length(data: bytes, index: int) -> tuple[int, int]:
    """Decodes the length at `index`, as `read_long` does; `MalformedError` for a negative one.

    A length may claim more than there is: slices stop at the end, and the index then lies beyond it.
    """
    length, index = read_long(data, index)
    if length < 0:
        raise MalformedError(f"a length of {length}")
    return length, index


def read_instant(data: bytes, index: int) -> tuple[int, int]:
    """Decodes as `read_long` does, and remembers the value when it has the six bytes of an instant."""
    number, end = read_long(data, index)
    if end - index == _INSTANT_BYTES:
        if len(INSTANTS) >= MEMO_SIZE:
            INSTANTS.clear()
        INSTANTS[data[index:end]] = number
    return number, end
