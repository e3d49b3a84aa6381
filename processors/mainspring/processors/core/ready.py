"""Jobs that are due, in the order their queue serves them: the strategy's key, tenants sharing by weight.

Three levels. A queue has *bands* (its priorities, where the strategy has them; else one). A band has *tenants*,
which take turns by start-time fair queueing: a tenant's tag grows by 1/weight for each job served, the smallest tag
is next, and a tenant that comes back after a pause starts at the band's present, so neither a burst nor an absence
buys anything. A tenant has a heap of its jobs by (key, seq). The next job of the queue is the one with the smallest
key among the next jobs of its bands. With one tenant that is exactly the order of the keys.

Adding and taking cost O(log n). Withdrawing costs O(1): an entry stays in its heap until it comes up, or until most
of the heap is such entries.
"""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from mainspring.processors.core.strategies import Key

__all__ = ["ReadyJob", "ReadyQueue"]

_GARBAGE_MIN = 64
"""Below this many withdrawn entries a rebuild costs more than it saves."""


class ReadyJob(NamedTuple):
    """What the order of a job depends on. None of it changes while the job waits, so it is computed once."""

    key: Key
    seq: int
    job_id: str
    band: int
    tenant: str


class _Tenant:
    """The waiting jobs of one tenant in one band."""

    __slots__ = ("heap", "name", "share", "waiting")

    def __init__(self, name: str, share: float) -> None:
        self.name = name
        self.share = share
        self.heap: list[ReadyJob] = []
        self.waiting = 0


class _Band:
    """The tenants of one band and whose turn it is."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._tenants: dict[str, _Tenant] = {}
        self._tags: dict[str, float] = {}
        self._turns: list[tuple[float, int, _Tenant]] = []
        self._present = 0.0
        self._tick = 0
        self.waiting = 0

    def add(self, job: ReadyJob) -> None:
        tenant = self._tenants.get(job.tenant)
        if tenant is None:
            tenant = _Tenant(job.tenant, 1 / self._weights.get(job.tenant, 1.0))
            self._tenants[job.tenant] = tenant
            self._take_turn(tenant, max(self._present, self._tags.get(job.tenant, 0.0)))
        heappush(tenant.heap, job)
        tenant.waiting += 1
        self.waiting += 1

    def withdraw(self, job: ReadyJob, live: Mapping[str, ReadyJob]) -> None:
        """Counts an entry out that has left `live`; its heap drops it when it comes up."""
        tenant = self._tenants[job.tenant]
        tenant.waiting -= 1
        self.waiting -= 1
        if not self.waiting:
            self._forget()
        elif len(tenant.heap) > 2 * tenant.waiting + _GARBAGE_MIN:
            tenant.heap = [each for each in tenant.heap if live.get(each.job_id) is each]
            heapify(tenant.heap)

    def peek(self, live: Mapping[str, ReadyJob]) -> ReadyJob | None:
        """The next job, left in place; drops what was withdrawn."""
        turns = self._turns
        while turns:
            tenant = turns[0][2]
            heap = tenant.heap
            while heap and live.get(heap[0].job_id) is not heap[0]:
                heappop(heap)
            if heap:
                return heap[0]
            self._leave(tenant, heappop(turns)[0])
        return None

    def take(self) -> None:
        """Takes the job that `peek` has just shown, and gives the turn to the next tenant."""
        tag, _, tenant = heappop(self._turns)
        heappop(tenant.heap)
        tenant.waiting -= 1
        self.waiting -= 1
        self._present = tag
        if not self.waiting:
            self._forget()
        elif tenant.waiting:
            self._take_turn(tenant, tag + tenant.share)
        else:
            self._leave(tenant, tag + tenant.share)

    def _take_turn(self, tenant: _Tenant, tag: float) -> None:
        self._tick += 1
        heappush(self._turns, (tag, self._tick, tenant))

    def _leave(self, tenant: _Tenant, tag: float) -> None:
        """Forgets a tenant without jobs, but not what it has had: until the present passes its tag, it counts."""
        del self._tenants[tenant.name]
        self._tags[tenant.name] = tag
        if len(self._tags) > 2 * len(self._tenants) + _GARBAGE_MIN:
            self._tags = {name: each for name, each in self._tags.items() if each > self._present}

    def _forget(self) -> None:
        """Nothing waits, so nobody is owed anything: all start level."""
        self._present = 0.0
        self._tenants.clear()
        self._tags.clear()
        self._turns.clear()


class ReadyQueue:
    """The due jobs of one queue of one partition."""

    def __init__(self, tenant_weights: Mapping[str, float]) -> None:
        self._weights = tenant_weights
        self._bands: dict[int, _Band] = {}
        self._live: dict[str, ReadyJob] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._live

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def add(self, job: ReadyJob) -> None:
        """Puts the job in its place. A job is here once; adding it again (a new value each time) moves it."""
        self.discard(job.job_id)
        self._live[job.job_id] = job
        band = self._bands.get(job.band)
        if band is None:
            band = self._bands[job.band] = _Band(self._weights)
        band.add(job)

    def discard(self, job_id: str) -> bool:
        """Withdraws the job; says whether it was here."""
        job = self._live.pop(job_id, None)
        if job is None:
            return False
        self._bands[job.band].withdraw(job, self._live)
        return True

    def pop(self) -> ReadyJob | None:
        """Takes the next job, or None where none waits."""
        best: ReadyJob | None = None
        best_band: _Band | None = None
        for band in self._bands.values():
            if band.waiting:
                job = band.peek(self._live)
                if job is not None and (best is None or job < best):
                    best, best_band = job, band
        if best is None or best_band is None:
            return None
        best_band.take()
        del self._live[best.job_id]
        return best

    def ahead_of(self, job: ReadyJob) -> int:
        """How many waiting jobs have a smaller key, the tenants' turns aside. Looks at every job: for explanations."""
        return sum(1 for each in self._live.values() if each < job)
