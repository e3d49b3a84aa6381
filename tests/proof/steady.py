"""A steady load of jobs from a client of its own; each has an end that is its own, whatever happens to brokers."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

from mainspring.client import Client, ClientConfig, NotDeliveredError, Submission
from mainspring.jobs import JobOptions, RetryPolicy
from mainspring.schemas import JobStatus
from mainspring.topics import partition_for
from tests.proof import jobs
from tests.proof.board import PATIENCE_S
from tests.proof.site import Site

BATCH = 5
_EVERY_S = 0.5
_DELIVERY_S = 10.0
_MAX_LOST = 1_000
_ONE_MORE = RetryPolicy(max_retries=1, base_delay=0.1)
_BUSY = 0
"""The partition that gets more than the others."""


class SteadyLoad:
    """Submits a few jobs again and again, in a thread. What is not acknowledged is submitted once more as the same."""

    def __init__(self, site: Site) -> None:
        config = ClientConfig.of(site.settings, actor="load@test")
        self._client = Client(config=replace(config, delivery_s=_DELIVERY_S))
        self._partitions = site.topology.partitions
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="steady-load")
        self.ends: dict[str, JobStatus] = {}
        """Every job that is in the log, and how it is to end."""
        self.undelivered = 0
        """How often the client said that a batch was not acknowledged."""

    def check(self) -> None:
        """Raises what ended the load, if anything has."""
        if self._error is not None:
            raise self._error

    def busiest(self) -> int:
        """The partition that has had most of the jobs."""
        return Counter(partition_for(job_id.encode(), self._partitions) for job_id in list(self.ends)).most_common()[0][
            0
        ]

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def finish(self) -> None:
        """Returns when all that was begun is in the log, and nothing more comes."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE_S)
        self._client.close()
        self.check()

    def _run(self) -> None:
        try:
            for batch in _batches(self._partitions):
                self._deliver([submission for submission, _ in batch.values()])
                self.ends.update({job_id: end for job_id, (_, end) in batch.items()})
                if self._stop.wait(_EVERY_S):
                    return
        except BaseException as error:  # noqa: BLE001  # raised where the test waits
            self._error = error

    def _deliver(self, batch: list[Submission]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._client.submit_many(batch, if_exists="return")
            except NotDeliveredError:
                self.undelivered += 1
                if self._stop.is_set() and time.monotonic() > deadline_s:
                    raise
            else:
                return


@contextmanager
def steady_load(site: Site) -> Iterator[SteadyLoad]:
    """A load that has begun, and ends with the block."""
    load = SteadyLoad(site)
    load.start()
    try:
        yield load
    finally:
        load.finish()


def _batches(partitions: int) -> Iterator[dict[str, tuple[Submission, JobStatus]]]:
    """Jobs by id, with how they end, for ever; the first of each batch is for the busy partition."""
    for number in count():
        names = [f"steady-{number:05}-{place}" for place in range(BATCH)]
        names[0] = _busy_name(names[0], partitions)
        yield {name: _job(name, number * BATCH + place) for place, name in enumerate(names)}


def _busy_name(base: str, partitions: int) -> str:
    named = (f"{base}-{number}" for number in count())
    return next(name for name in named if partition_for(name.encode(), partitions) == _BUSY)


def _job(job_id: str, number: int) -> tuple[Submission, JobStatus]:
    """One of each kind among many that do nothing."""
    kind: tuple[Any, JobOptions, JobStatus]
    match number % 20:
        case 3:
            kind = jobs.nap.job(0.3), JobOptions(), JobStatus.COMPLETED
        case 7:
            kind = jobs.block.job(0.3), JobOptions(), JobStatus.COMPLETED
        case 11:
            # Nobody can sleep for less than nothing, so it fails after it has begun.
            kind = jobs.block.job(-1.0), JobOptions(retry=_ONE_MORE), JobStatus.FAILED
        case 13:
            kind = jobs.nap.job(600.0), JobOptions(timeout=0.5), JobStatus.TIMED_OUT
        case 17:
            kind = jobs.quick.job(), JobOptions(delay=2.0), JobStatus.COMPLETED
        case _:
            kind = jobs.quick.job(), JobOptions(), JobStatus.COMPLETED
    job, options, end = kind
    return Submission(job, options=options.over(JobOptions(job_id=job_id, max_lost=_MAX_LOST))), end
