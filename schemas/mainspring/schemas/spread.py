"""Numbers that spread what happens at one instant over a while: no dice roll, but a hash of a name.

Whoever asks again gets the same number, so that a replay, a restart and another process agree.
"""

from hashlib import blake2b

__all__ = ["spread_over"]


def spread_over(name: str, count: int) -> int:
    """A whole number from 0 up to, and without, `count`: the same for the same name for ever, even over many names.

    0 where there is nothing to choose.
    """
    if count <= 1:
        return 0
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") * count >> 64
