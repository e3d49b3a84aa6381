"""Leases of running attempts, by a clock that is never set back."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from mainspring.schemas.common import HeldAttempt

__all__ = ["Lease", "LeaseTable"]


class Lease:
    """One confirmed attempt and the instant until which it needs no sign of life."""

    __slots__ = ("attempt", "cancelled", "expires_at_ms", "incarnation", "job_id")

    def __init__(self, job_id: str, attempt: int, incarnation: str, expires_at_ms: int, *, cancelled: bool) -> None:
        self.job_id = job_id
        self.attempt = attempt
        self.incarnation = incarnation
        self.expires_at_ms = expires_at_ms
        self.cancelled = cancelled


class LeaseTable:
    """All leases of a partition. Renewing is one dictionary look-up and one assignment per attempt.

    The heap holds each lease once, at a time not later than its expiry: a renewal does not touch it, and an entry that
    comes up too early is put back. So a lease costs the heap something once in a lease, however often it is renewed.
    """

    def __init__(self, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._leases: dict[str, Lease] = {}
        self._heap: list[tuple[int, int, Lease]] = []
        self._tick = 0

    def __len__(self) -> int:
        return len(self._leases)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._leases

    def __iter__(self) -> Iterator[str]:
        return iter(self._leases)

    def grant(self, job_id: str, attempt: int, incarnation: str, now_ms: int, *, cancelled: bool = False) -> None:
        """A fresh lease, for a confirmed start or for what a new owner of the partition finds running."""
        lease = Lease(job_id, attempt, incarnation, now_ms + self._lease_ms, cancelled=cancelled)
        self._leases[job_id] = lease
        self._push(lease)

    def end(self, job_id: str) -> None:
        """The attempt has ended."""
        self._leases.pop(job_id, None)

    def cancel_requested(self, job_id: str) -> None:
        """Every heartbeat that still names the attempt is to be told again to stop it."""
        lease = self._leases.get(job_id)
        if lease is not None:
            lease.cancelled = True

    def renew(
        self, held: Sequence[HeldAttempt], incarnation: str, now_ms: int
    ) -> tuple[list[HeldAttempt], list[HeldAttempt]]:
        """Renews what is held rightly. Returns what is no longer the worker's, and what it is to stop."""
        expires_at_ms = now_ms + self._lease_ms
        leases = self._leases
        gone: list[HeldAttempt] = []
        cancelled: list[HeldAttempt] = []
        for each in held:
            lease = leases.get(each.job_id)
            if lease is None or lease.attempt != each.attempt or lease.incarnation != incarnation:
                gone.append(each)
                continue
            lease.expires_at_ms = expires_at_ms
            if lease.cancelled:
                cancelled.append(each)
        return gone, cancelled

    def next_expiry_ms(self) -> int | None:
        """When the first lease runs out, or None where nothing runs."""
        heap = self._heap
        while heap:
            at_ms, _, lease = heap[0]
            if self._leases.get(lease.job_id) is not lease:
                heappop(heap)
            elif lease.expires_at_ms > at_ms:
                heappop(heap)
                self._push(lease)
            else:
                return at_ms
        return None

    def expired(self, by_ms: int) -> list[Lease]:
        """The leases that ran out at or before `by_ms`, earliest first. They stay until their attempts are ended."""
        found: list[Lease] = []
        while (at_ms := self.next_expiry_ms()) is not None and at_ms <= by_ms:
            found.append(heappop(self._heap)[2])
        for lease in found:
            self._push(lease)
        return found

    def _push(self, lease: Lease) -> None:
        self._tick += 1
        heappush(self._heap, (lease.expires_at_ms, self._tick, lease))
