"""A table from 64-bit keys to 64-bit values that takes 17 bytes a slot, for one entry per job of a long log."""

from array import array
from collections.abc import Iterator

__all__ = ["DigestTable"]

MASK = 0xFFFF_FFFF_FFFF_FFFF
START_SLOTS = 1 << 12
FULL = 0.6


class DigestTable:
    """An open-addressing hash table in flat arrays: a dict of Python integers would take ten times the memory.

    Keys are any integers, taken modulo 2⁶⁴ (zero as one). Entries are never removed. Each has a mark, unset at first.
    """

    __slots__ = ("_count", "_keys", "_marks", "_mask", "_values")

    def __init__(self) -> None:
        self._allocate(START_SLOTS)
        self._count = 0

    def _allocate(self, slots: int) -> None:
        self._mask = slots - 1
        self._keys = array("Q", bytes(8 * slots))
        self._values = array("Q", bytes(8 * slots))
        self._marks = bytearray(slots)

    def __len__(self) -> int:
        return self._count

    def _slot(self, key: int) -> int:
        """The slot of the key, or the free one where it belongs."""
        keys, mask = self._keys, self._mask
        # Python's hash of a small integer is itself: spread the bits, else keys that count up would cluster.
        slot = ((key * 0x9E37_79B9_7F4A_7C15) & MASK) >> 20 & mask
        while True:
            found = keys[slot]
            if found in (key, 0):
                return slot
            slot = (slot + 1) & mask

    def get(self, key: int) -> int | None:
        """The value of the key, None when it has none."""
        key = (key & MASK) or 1
        slot = self._slot(key)
        return self._values[slot] if self._keys[slot] else None

    def put(self, key: int, value: int) -> None:
        """Sets the value of the key and takes its mark away."""
        key = (key & MASK) or 1
        slot = self._slot(key)
        if not self._keys[slot]:
            if self._count >= FULL * (self._mask + 1):
                self._grow()
                slot = self._slot(key)
            self._keys[slot] = key
            self._count += 1
        self._values[slot] = value & MASK
        self._marks[slot] = 0

    def mark(self, key: int) -> None:
        """Marks the key; nothing when it is absent."""
        key = (key & MASK) or 1
        slot = self._slot(key)
        if self._keys[slot]:
            self._marks[slot] = 1

    def items(self) -> Iterator[tuple[int, int]]:
        """All entries, keys as they are stored."""
        for slot, key in enumerate(self._keys):
            if key:
                yield key, self._values[slot]

    def unmarked(self) -> Iterator[tuple[int, int]]:
        """The entries without a mark."""
        for slot, key in enumerate(self._keys):
            if key and not self._marks[slot]:
                yield key, self._values[slot]

    def _grow(self) -> None:
        keys, values, marks = self._keys, self._values, self._marks
        self._allocate(2 * (self._mask + 1))
        for old, key in enumerate(keys):
            if key:
                slot = self._slot(key)
                self._keys[slot], self._values[slot], self._marks[slot] = key, values[old], marks[old]
