"""Values of a field, and lists of words, as people read them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

__all__ = ["joined", "listed", "ordinal", "values_of"]

_RUN_MIN: Final = 3
_STEPS_MIN: Final = 5
_TEENS: Final = range(11, 14)


def values_of(bits: int) -> list[int]:
    """The numbers of the bits that are set, rising."""
    return [at for at in range(bits.bit_length()) if bits >> at & 1]


def listed(values: Sequence[int], names: Sequence[str] | None = None) -> str:
    """`1 to 5 and 9`, `1, 3, 5 … 31`, `1, 3 and 7`; rising values, by their `names` where they have some."""
    words = [names[value] if names else str(value) for value in values]
    steps = {right - left for left, right in pairwise(values)}
    if len(values) >= _STEPS_MIN and len(steps) == 1 and steps != {1}:
        return f"{', '.join(words[:3])} … {words[-1]}"
    parts: list[str] = []
    start = 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[at - 1] + 1:
            run = words[start:at]
            parts += [f"{run[0]} to {run[-1]}"] if len(run) >= _RUN_MIN else run
            start = at
    return joined(parts)


def joined(words: Sequence[str], last: str = " and ") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + last + words[-1]


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`."""
    suffix = "th" if number % 100 in _TEENS else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
