"""A load of jobs under a dozen faults, each at a moment that was seen to be bad, and what must hold at the end."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mainspring.client import Submission
from mainspring.jobs import JobOptions
from mainspring.processors.projector.view import View
from mainspring.schemas import JobCompleted, JobStarted
from tests.proof import jobs
from tests.proof.faults import Faults
from tests.proof.ledger import Ledger
from tests.proof.site import names

JOBS = 20_000
FAULTS = 12
PART = JOBS // (FAULTS + 2)
"""Jobs that are submitted before each fault."""
_NAPS, _BLOCKS, _CRUNCHES = 450, 550, 24
_MIN_S, _MAX_S = 0.2, 1.0


@dataclass(slots=True)
class Storm(Faults):
    """One run: the site, what was submitted, what was done to it."""

    ids: list[str] = field(default_factory=list)
    _unsent: list[tuple[str, Submission]] = field(default_factory=list)

    def begin(self) -> None:
        """Makes the jobs, mostly quick ones with longer ones of each model spread among them, and submits a part."""
        kinds: list[tuple[str, Callable[[float], Any], int]] = [
            ("nap", jobs.nap.job, _NAPS),
            ("block", jobs.block.job, _BLOCKS),
            ("crunch", jobs.crunch.job, _CRUNCHES),
        ]
        longer: list[tuple[str, Submission]] = []
        for kind, job, count in kinds:
            for number, job_id in enumerate(names(kind, count)):
                seconds = _MIN_S + (_MAX_S - _MIN_S) * number / count
                longer.append((job_id, Submission(job(seconds), options=_options(job_id))))
        quick = [
            (job_id, Submission(jobs.quick.job(), options=_options(job_id)))
            for job_id in names("quick", JOBS - len(longer))
        ]
        self._unsent = _spread(quick, longer)
        self.ids = [job_id for job_id, _ in self._unsent]
        self._submit(PART)

    def next_part(self) -> None:
        """Submits the next part of the jobs, and returns when a third as many have completed since: in mid-load."""
        before, some = self.site.board.completed, PART // 3
        self._submit(PART)
        self.site.until(lambda: self.site.board.completed >= before + some, f"{some} more jobs to complete")

    def _submit(self, count: int) -> None:
        part, self._unsent = self._unsent[:count], self._unsent[count:]
        self.site.client.submit_many([submission for _, submission in part])

    def finish(self) -> Ledger:
        """Submits the rest, until everything has completed and the view has seen it; what the handlers have done."""
        self._submit(len(self._unsent))
        self.site.until(lambda: self.site.board.completed >= JOBS, "every job to complete")
        with View(self.site.settings.view.url.get_secret_value()) as view:
            self.site.until(lambda: sum(view.counts().by_status.values()) == JOBS, "the view to have every job")
            self.site.until(
                lambda: sum(n for status, n in view.counts().by_status.items() if status.is_terminal) == JOBS,
                "the view to have every end",
            )
        return self.site.ledger()

    def assert_not_void(self) -> None:
        """The run proves nothing unless the faults hit."""
        assert self.with_transaction_open >= FAULTS // 2, f"void: {self.with_transaction_open} with a transaction open"
        assert self.with_attempts_running >= FAULTS // 2, f"void: {self.with_attempts_running} with attempts running"

    def assert_nothing_was_lost_or_doubled(self, ledger: Ledger) -> None:
        """Every job has completed, once, by an attempt that really ran; no attempt ran twice or unconfirmed."""
        board = self.site.board
        completed = {event.job_id: event.attempt for event in board.kinds[JobCompleted]}
        assert sorted(completed) == sorted(self.ids)
        assert board.completed == JOBS, "a job completed twice"
        without = [key for key in completed.items() if key not in ledger.ended]
        assert without == [], "completed, but the handler has not written that it ended"
        assert ledger.begun_twice() == set(), "an attempt was started twice"
        confirmed = {(event.job_id, event.attempt) for event in board.kinds[JobStarted]}
        assert set(ledger.began) <= confirmed, "an attempt ran that was never confirmed"

    def assert_the_log_agrees(self) -> None:
        """`mainspring log verify`: fold, tables and view."""
        code, report = self.site.verify()
        assert code == 0, report
        assert report["jobs_by_status"] == {"COMPLETED": JOBS}
        assert report["view_rows"] == JOBS


def _options(job_id: str) -> JobOptions:
    # Each fault may cost a job one attempt, and with the default of three the unluckiest would rightly fail.
    return JobOptions(job_id=job_id, max_lost=FAULTS)


def _spread(
    many: Sequence[tuple[str, Submission]], few: Sequence[tuple[str, Submission]]
) -> list[tuple[str, Submission]]:
    """The few, one after every so many of the many."""
    step = len(many) // len(few)
    mixed: list[tuple[str, Submission]] = []
    rest = iter(many)
    # Kinds and lengths in turn, so that each moment has some of all.
    for number in range(len(few)):
        mixed.append(few[number * 389 % len(few)])
        mixed.extend(itertools.islice(rest, step))
    mixed.extend(rest)
    return mixed
