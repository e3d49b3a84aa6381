"""Jobs that are flaky, long or deadly, on workers of which one is killed every two seconds, and what that cost."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mainspring.client import Submission
from mainspring.jobs import JobOptions
from mainspring.schemas import JobCompleted, JobFailed, JobRetryScheduled, JobStarted
from mainspring.schemas.codes import FailReason, RetryReason
from tests.proof import jobs
from tests.proof.faults import Faults
from tests.proof.ledger import Ledger
from tests.proof.site import Member

EVERY_S = 2.0
MANY = 1_000
"""Losses that a job may have: each kill may cost one, and the unluckiest would else rightly fail."""
FEW = 3
"""Losses that a job may have which kills every worker that it meets."""
PATIENCE_S = 1_800.0
"""A backlog may be left when the last kill has come; what bounds the test is its own time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Of so many jobs: how many are what. `deadly` kill their worker once, `poison` each worker that they meet."""

    jobs: int

    @property
    def deadly(self) -> int:
        """1 %, those below included."""
        return self.jobs // 100 - self.poison

    @property
    def poison(self) -> int:
        """1 of 1,000, one at least: each takes one worker more than it may lose."""
        return max(1, self.jobs // 1_000)

    @property
    def flaky(self) -> int:
        """5 %."""
        return self.jobs // 20

    @property
    def long(self) -> int:
        """10 % take longer than a lease."""
        return self.jobs // 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a storm has cost. Times in milliseconds, from the death of a worker until the scheduler gave up on a run."""

    deaths: int
    every_s: float
    lost: int
    repeated: int
    detected_ms: tuple[float, ...]

    def __str__(self) -> str:
        times = self.detected_ms
        p50, p99 = (times[min(len(times) - 1, len(times) * share // 100)] for share in (50, 99))
        return (
            f"{self.deaths} deaths, one every {self.every_s:.1f} s, {self.lost} attempts lost with them, "
            f"{self.repeated} side effects repeated ({self.repeated / self.deaths:.2f} per death); "
            f"deaths noticed after {p50:.0f} ms p50, {p99:.0f} ms p99, {times[-1]:.0f} ms at most"
        )


@dataclass(slots=True, kw_only=True)
class WorkerStorm(Faults):
    """One run: `kills` kills, one every `EVERY_S` or as soon as a worker runs something, while `count` jobs come in.

    `seconds`: shortest and longest of the jobs that are nothing special. `lease_ms`: that of the workers.
    """

    count: int
    kills: int
    seconds: tuple[float, float]
    lease_ms: int
    dead_at_ns: dict[str, int] = field(default_factory=dict)
    """When each life of a worker ended, by the monotonic clock."""
    ids: list[str] = field(default_factory=list)
    poisonous: set[str] = field(default_factory=set)

    def run(self, workers: list[Member]) -> Ledger:
        """Submits and kills until everything has ended; what the handlers have written down."""
        for worker in workers:
            self._watch(worker)
        unsent = self._made()
        due_s = time.monotonic()
        killed = 0
        while killed < self.kills:
            self._submit(unsent, self.count // self.kills)
            due_s += EVERY_S
            self._until(workers, lambda due_s=due_s: time.monotonic() >= due_s, "the time of the next kill")  # type: ignore[misc]
            victim, _ = self.stop_while_running(workers)
            self._bury(victim)
            killed += 1
        self._submit(unsent, self.count)
        self._until(workers, lambda: self._ended >= self.count, "every job to end")
        return self.site.ledger()

    def assert_nothing_was_lost_or_doubled(self, ledger: Ledger) -> None:
        """Every job has its end, once, by an attempt that really came to it; no attempt ran twice, no job at once."""
        kinds = self.site.board.kinds
        ends = Counter(event.job_id for kind in (JobCompleted, JobFailed) for event in kinds[kind])
        assert ends == Counter(self.ids)
        failed = {event.job_id: (event.reason, event.attempt) for event in kinds[JobFailed]}
        assert failed == dict.fromkeys(self.poisonous, (FailReason.LOST, FEW + 1))
        ended = {key for key, entries in ledger.ended.items() if entries[0].what == "ended"}
        assert {(event.job_id, event.attempt) for event in kinds[JobCompleted]} <= ended
        assert ledger.begun_twice() == set(), "an attempt was started twice"
        assert set(ledger.began) <= {(event.job_id, event.attempt) for event in kinds[JobStarted]}
        assert ledger.overlaps(self.dead_at_ns) == [], "a job ran twice at once"
        open_ones = {key for key in ledger.began if key not in ledger.ended}
        assert open_ones <= self._given_up().keys(), "an attempt died with its worker and nobody noticed"

    def findings(self, ledger: Ledger) -> Findings:
        """What it has cost."""
        wall_ms = (time.time_ns() - time.monotonic_ns()) / 1e6
        died_ms = {life: at_ns / 1e6 + wall_ms for life, at_ns in self.dead_at_ns.items()}
        given_up = self._given_up()
        detected = [
            given_up[key] - died_ms[entries[0].life]
            for key, entries in ledger.began.items()
            if key in given_up and entries[0].life in died_ms
        ]
        wanted_again = sum(entries[0].what == "failed" for entries in ledger.ended.values())
        return Findings(
            deaths=len(died_ms),
            every_s=(max(died_ms.values()) - min(died_ms.values())) / 1_000 / (len(died_ms) - 1),
            lost=len(given_up),
            repeated=sum(times - 1 for times in ledger.duplicates().values()) - wanted_again,
            detected_ms=tuple(sorted(detected)),
        )

    def assert_the_log_agrees(self) -> None:
        """`mainspring log verify`: fold, tables, tokens."""
        code, report = self.site.verify("--no-view")
        assert code == 0, report
        failed = len(self.poisonous)
        assert report["jobs_by_status"] == {"COMPLETED": self.count - failed, "FAILED": failed}

    @property
    def _ended(self) -> int:
        kinds = self.site.board.kinds
        return len(kinds[JobCompleted]) + len(kinds[JobFailed])

    def _given_up(self) -> Mapping[tuple[str, int], int]:
        """Attempts that were lost, by the scheduler's word, with the time of that word."""
        kinds = self.site.board.kinds
        lost = [event for event in kinds[JobRetryScheduled] if event.reason == RetryReason.LOST]
        lost += [event for event in kinds[JobFailed] if event.reason == FailReason.LOST]
        return {(event.job_id, event.attempt): event.decided_at_ms for event in lost}

    def _until(self, workers: list[Member], condition: Callable[[], bool], what: str) -> None:
        """Waits, and starts again what has died: the machine's own supervisor would."""

        def revive() -> None:
            for worker in workers:
                if worker.process is not None and worker.process.poll() is not None:
                    self._bury(worker)
            for member in self.site.members.values():
                if member not in workers:
                    member.check()

        self.site.board.until(condition, what, patience_s=PATIENCE_S, check=revive)

    def _bury(self, worker: Member) -> None:
        worker.kill()
        worker.start()
        self._watch(worker)

    def _watch(self, worker: Member) -> None:
        """Notes when this life ends, also where that is by its own hand and nobody looks."""
        life, pid = worker.life, worker.pid

        def wait() -> None:
            with suppress(ChildProcessError):  # somebody has waited for it already
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            self.dead_at_ns[life] = time.monotonic_ns()

        threading.Thread(target=wait, name=f"proof-end-of-{life}", daemon=True).start()

    def _submit(self, unsent: Iterator[Submission], count: int) -> None:
        part = list(islice(unsent, count))
        self.ids += [str(submission.options.job_id) for submission in part if submission.options is not None]
        self.site.client.submit_many(part)

    def _made(self) -> Iterator[Submission]:
        """The jobs, each kind spread evenly among the others."""
        shares = Shares(jobs=self.count)
        shortest, longest = self.seconds
        kinds: list[tuple[str, int, Any]] = [
            ("poison", shares.poison, lambda _: jobs.deadly.job(MANY)),
            ("deadly", shares.deadly, lambda _: jobs.deadly.job(1)),
            ("flaky", shares.flaky, lambda share: jobs.flaky.job(shortest + share * (longest - shortest))),
            ("long", shares.long, lambda share: jobs.work.job(self.lease_ms / 1_000 * (1.1 + 0.4 * share))),
        ]
        plain = self.count - sum(count for _, count, _ in kinds)
        kinds.append(("plain", plain, lambda share: jobs.work.job(shortest + share * (longest - shortest))))
        placed: list[tuple[float, str, Any]] = []
        for kind, count, make in kinds:
            for number in range(count):
                # Lengths in another order than places, so that each moment has some of all.
                share = number * 389 % count / count
                placed.append(((number + 0.5) / count, f"{kind}-{number:05}", make(share)))
        self.poisonous = {job_id for _, job_id, _ in placed if job_id.startswith("poison")}
        for _, job_id, job in sorted(placed, key=lambda each: each[:2]):
            max_lost = FEW if job_id in self.poisonous else MANY
            yield Submission(job, options=JobOptions(job_id=job_id, max_lost=max_lost))
