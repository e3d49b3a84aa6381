"""Jobs that are due, in the order their queue serves them: the strategy's key, tenants sharing by weight.

Three levels. A queue has *bands* (its priorities, where the strategy has them; else one). A band has *tenants*,
which take turns by start-time fair queueing: a tenant's tag grows by 1/weight for each job served, the smallest tag
is next, and a tenant that comes back after a pause starts at the band's present, so neither a burst nor an absence
buys anything. A tenant has a heap of its jobs by (key, seq). The next job of the queue is the one with the smallest
key among the next jobs of its bands. With one tenant that is exactly the order of the keys.

Adding and taking cost O(log n). Withdrawing costs O(1): an entry stays in its heap until it comes up, or until most
of the heap is such entries.

With a lane store only the first jobs of a tenant are in its heap. The others, which come behind its *horizon*, are in
the store; the heap is filled from there when it is used up, and its later half goes there when it is too large.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from heapq import heapify, heappop, heappush

from mainspring.processors.core.index.lanes import LaneStore
from mainspring.processors.core.index.ready_job import ReadyJob

__all__ = ["ReadyJob", "ReadyQueue"]

Live = MutableMapping[str, ReadyJob]
"""The jobs of a queue that are in memory and have not been withdrawn, by id."""

_PLACE = 3
"""The fields of a job that are its place in a lane: key, seq, id."""

_GARBAGE_MIN = 64
"""Below this many withdrawn entries a rebuild costs more than it saves."""


class _Tenant:
    """The waiting jobs of one tenant in one band: a lane."""

    __slots__ = ("_horizon", "_lane", "_read_to", "_store", "heap", "held", "name", "share", "spilled")

    def __init__(self, name: str, share: float, store: LaneStore | None) -> None:
        self.name = name
        self.share = share
        self.heap: list[ReadyJob] = []
        self.held = 0
        """Those in the heap that have not been withdrawn."""
        self.spilled = 0
        """Those that are in the store, by what was put there and withdrawn."""
        self._store = store
        self._lane = 0 if store is None else store.open_lane()
        self._horizon: ReadyJob | None = None
        self._read_to: ReadyJob | None = None
        """Up to here the store still has what was read: it is in the heap, or has been taken."""

    @property
    def waiting(self) -> int:
        return self.held + self.spilled

    def add(self, job: ReadyJob, live: Live) -> None:
        store = self._store
        if store is not None and self._is_behind(job):
            store.put(self._lane, job)
            self.spilled += 1
            return
        live[job.job_id] = job
        self.held += 1
        heappush(self.heap, job)
        if store is not None and len(self.heap) > store.room:
            self._spill_later_half(store, live)

    def take(self, live: Live) -> None:
        """Takes the job that `first` has just shown."""
        heappop(self.heap)
        self.held -= 1
        self._look_behind(live)

    def withdraw(self, live: Live) -> None:
        """Counts a job out that has left `live`; the heap drops it when it comes up."""
        self.held -= 1
        self._look_behind(live)
        if len(self.heap) > 2 * self.held + _GARBAGE_MIN:
            self.heap = [each for each in self.heap if live.get(each.job_id) is each]
            heapify(self.heap)

    def withdraw_spilled(self, job: ReadyJob, live: Live) -> bool:
        """Takes a job out of the store; says whether it can be there."""
        if self._store is None or not self._is_behind(job):
            return False
        self._store.delete(self._lane, job)
        self.spilled = max(0, self.spilled - 1)
        self._look_behind(live)
        return True

    def first(self, live: Live) -> ReadyJob | None:
        """The next job, left in place; drops what was withdrawn, and fills the heap."""
        while True:
            heap = self.heap
            while heap and live.get(heap[0].job_id) is not heap[0]:
                heappop(heap)
            if heap:
                return heap[0]
            self.held = 0
            if not self._refill(live):
                return None

    def at_least_ahead_of(self, job: ReadyJob, live: Live) -> tuple[int, bool]:
        """How many of its jobs come before this one, and whether that is all of them."""
        ahead = sum(1 for each in self.heap if each < job and live.get(each.job_id) is each)
        return ahead, not self.spilled or not self._is_behind(job)

    def close(self) -> None:
        if self._store is not None:
            self._store.close_lane(self._lane)

    def _is_behind(self, job: ReadyJob) -> bool:
        # As the store orders them: a job that was parked comes back with a later instant and in its old place, which is
        # not behind itself.
        horizon = self._horizon
        return horizon is not None and job[:_PLACE] > horizon[:_PLACE]

    def _look_behind(self, live: Live) -> None:
        """Before a lane counts as empty the store is asked: what is left in a lane that is forgotten is lost."""
        if not self.held and not self.spilled:
            self._refill(live)

    def _refill(self, live: Live) -> bool:
        """Moves the horizon on; says whether the store had more."""
        if self._store is None or self._horizon is None:
            return False
        limit = max(1, self._store.room // 2)
        jobs = self._store.take(self._lane, self._horizon, limit)
        if jobs:
            self._read_to = jobs[-1]
        self._horizon = jobs[-1] if len(jobs) == limit else None
        # Counted from what is there: where the count and the store differ, the store is right.
        self.spilled = 0 if self._horizon is None else max(0, self.spilled - len(jobs))
        found = [each for each in jobs if each.job_id not in live]
        self.held += len(found)
        # Behind all that is in the heap, and in order, so it stays a heap.
        self.heap += found
        live.update((each.job_id, each) for each in found)
        return bool(jobs)

    def _spill_later_half(self, store: LaneStore, live: Live) -> None:
        order = sorted(each for each in self.heap if live.get(each.job_id) is each)
        kept = len(order) if len(order) <= store.room else (len(order) + 1) // 2
        self.heap, self.held = order[:kept], kept
        if kept == len(order):
            return
        self._horizon = order[kept - 1]
        if self._read_to is not None and self._is_behind(self._read_to):
            # Or what was read before would be read again, jobs that have been taken since among it.
            store.forget(self._lane, self._read_to)
            self._read_to = None
        for job in order[kept:]:
            del live[job.job_id]
            store.put(self._lane, job)
        self.spilled += len(order) - kept


class _Band:
    """The tenants of one band and whose turn it is."""

    def __init__(self, weights: Mapping[str, float], store: LaneStore | None) -> None:
        self._weights = weights
        self._store = store
        self._tenants: dict[str, _Tenant] = {}
        self._tags: dict[str, float] = {}
        self._turns: list[tuple[float, int, _Tenant]] = []
        self._present = 0.0
        self._tick = 0
        self.waiting = 0

    def add(self, job: ReadyJob, live: Live) -> None:
        tenant = self._tenants.get(job.tenant)
        if tenant is None:
            tenant = _Tenant(job.tenant, 1 / self._weights.get(job.tenant, 1.0), self._store)
            self._tenants[job.tenant] = tenant
            self._take_turn(tenant, max(self._present, self._tags.get(job.tenant, 0.0)))
        tenant.add(job, live)
        self.waiting += 1

    def withdraw(self, job: ReadyJob, live: Live) -> None:
        """Counts an entry out that has left `live`; its heap drops it when it comes up."""
        tenant = self._tenants[job.tenant]
        before = tenant.waiting
        tenant.withdraw(live)
        self._count(tenant.waiting - before)

    def withdraw_spilled(self, job: ReadyJob, live: Live) -> bool:
        """Withdraws a job that is not in memory; says whether it can have been in the store."""
        tenant = self._tenants.get(job.tenant)
        if tenant is None:
            return False
        before = tenant.waiting
        found = tenant.withdraw_spilled(job, live)
        self._count(tenant.waiting - before)
        return found

    def peek(self, live: Live) -> ReadyJob | None:
        """The next job, left in place; drops what was withdrawn."""
        turns = self._turns
        while turns:
            tenant = turns[0][2]
            before = tenant.waiting
            job = tenant.first(live)
            self.waiting += tenant.waiting - before
            if job is not None:
                return job
            self._leave(tenant, heappop(turns)[0])
        return None

    def take(self, live: Live) -> None:
        """Takes the job that `peek` has just shown, and gives the turn to the next tenant."""
        tag, _, tenant = heappop(self._turns)
        before = tenant.waiting
        tenant.take(live)
        self.waiting += tenant.waiting - before
        self._present = tag
        if not self.waiting:
            self._forget()
        elif tenant.waiting:
            self._take_turn(tenant, tag + tenant.share)
        else:
            self._leave(tenant, tag + tenant.share)

    def at_least_ahead_of(self, job: ReadyJob, live: Live) -> tuple[int, bool]:
        """How many jobs have a smaller key, and whether that is all of them."""
        counts = [tenant.at_least_ahead_of(job, live) for tenant in self._tenants.values()]
        return sum(count for count, _ in counts), all(is_exact for _, is_exact in counts)

    def _count(self, change: int) -> None:
        """Counts what was withdrawn."""
        self.waiting += change
        if not self.waiting:
            self._forget()

    def _take_turn(self, tenant: _Tenant, tag: float) -> None:
        self._tick += 1
        heappush(self._turns, (tag, self._tick, tenant))

    def _leave(self, tenant: _Tenant, tag: float) -> None:
        """Forgets a tenant without jobs, but not what it has had: until the present passes its tag, it counts."""
        tenant.close()
        del self._tenants[tenant.name]
        self._tags[tenant.name] = tag
        if len(self._tags) > 2 * len(self._tenants) + _GARBAGE_MIN:
            self._tags = {name: each for name, each in self._tags.items() if each > self._present}

    def _forget(self) -> None:
        """Nothing waits, so nobody is owed anything: all start level."""
        self._present = 0.0
        for tenant in self._tenants.values():
            tenant.close()
        self._tenants.clear()
        self._tags.clear()
        self._turns.clear()


class ReadyQueue:
    """The due jobs of one queue of one partition."""

    def __init__(self, tenant_weights: Mapping[str, float], store: LaneStore | None = None) -> None:
        self._weights = tenant_weights
        self._store = store
        self._bands: dict[int, _Band] = {}
        self._live: dict[str, ReadyJob] = {}

    def __len__(self) -> int:
        return sum(band.waiting for band in self._bands.values())

    def __iter__(self) -> Iterator[str]:
        """The jobs in memory."""
        return iter(self._live)

    def find(self, job_id: str) -> ReadyJob | None:
        """The job, where it is in memory."""
        return self._live.get(job_id)

    def add(self, job: ReadyJob) -> None:
        """Puts the job in its place. One that is in memory already is moved there."""
        before = self._live.get(job.job_id)
        if before is not None:
            self.discard(before)
        band = self._bands.get(job.band)
        if band is None:
            band = self._bands[job.band] = _Band(self._weights, self._store)
        band.add(job, self._live)

    def discard(self, job: ReadyJob) -> bool:
        """Withdraws the job; says whether it was here, or can have been in the store."""
        found = self._live.pop(job.job_id, None)
        if found is not None:
            self._bands[found.band].withdraw(found, self._live)
            return True
        band = self._bands.get(job.band)
        return band is not None and band.withdraw_spilled(job, self._live)

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
        best_band.take(self._live)
        del self._live[best.job_id]
        return best

    def at_least_ahead_of(self, job: ReadyJob) -> tuple[int, bool]:
        """How many waiting jobs in memory have a smaller key, the tenants' turns aside, and whether that is all.

        Looks at every job in memory: for explanations.
        """
        counts = [band.at_least_ahead_of(job, self._live) for band in self._bands.values()]
        return sum(count for count, _ in counts), all(is_exact for _, is_exact in counts)
