"""Are all events of a transaction there? Each says which of how many it is."""

from mainspring.log.verify.digests import MASK, DigestTable
from mainspring.schemas.common import Txn

__all__ = ["TransactionLedger", "mix"]


def mix(index: int) -> int:
    """A 64-bit fingerprint of a place in a transaction (splitmix64), so that sums tell sets apart."""
    z = (index + 0x9E37_79B9_7F4A_7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
    return z ^ (z >> 31)


LARGEST = 1_000_000
"""Events in one transaction; the engine's batches are a hundred times smaller."""


class TransactionLedger:
    """Sums the fingerprints of what is missing of each transaction; zero is complete. 17 bytes a slot for any size."""

    def __init__(self) -> None:
        self._missing = DigestTable()
        self._whole = [0]
        self._mixed: list[int] = []

    def __len__(self) -> int:
        return len(self._missing)

    def see(self, txn: Txn) -> None:
        """Notes one event of a transaction."""
        missing = self._missing.get(txn.id)
        if missing is None:
            missing = self._sum(txn.size)
        self._missing.put(txn.id, missing - self._of(txn.index))

    def torn(self) -> list[int]:
        """Ids of transactions of which not every event was seen exactly once."""
        return sorted(key for key, missing in self._missing.unmarked() if missing)

    def _of(self, index: int) -> int:
        if 0 <= index < len(self._mixed):
            return self._mixed[index]
        return mix(index)

    def _sum(self, size: int) -> int:
        """The fingerprint of a whole transaction; a size that no transaction has counts as none."""
        if not 0 < size <= LARGEST:
            return 0
        while len(self._whole) <= size:
            self._mixed.append(mix(len(self._mixed)))
            self._whole.append((self._whole[-1] + self._mixed[-1]) & MASK)
        return self._whole[size]
