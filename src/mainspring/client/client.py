"""The client for callers that block."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from mainspring.client.commands import Arguments, IfExists, Submission, Terms, adopts, to_options
from mainspring.client.config import ClientConfig
from mainspring.client.core import ClientCore
from mainspring.client.handle import TIMEOUT_S, JobHandle
from mainspring.client.info import JobInfo
from mainspring.client.outcomes import CancelOutcome
from mainspring.client.queries import Filters, HistoryEntry, Queries
from mainspring.client.schedules.blocking import Schedules
from mainspring.client.schedules.core import ScheduleCore
from mainspring.client.steps import drive
from mainspring.client.watch import Watch
from mainspring.client.wire import Deadline
from mainspring.jobs.spec import Submittable

if TYPE_CHECKING:
    from mainspring.processors.projector.model import JobOrder, JobPage
    from mainspring.settings import Settings

__all__ = ["Client", "IfExists"]

"""What a submit of a known job id means: an error, or the handle of the earlier job."""


class Client:
    """Submits jobs and follows them. Thread-safe; use one per process, as a context manager or with `close`.

    Args:
        settings: everything; without them the environment is read (`MAINSPRING_…`), where `bootstrap` wins.
        bootstrap: brokers to begin with.
        actor: who is asking, for the audit; `user@host` by default.
        config: instead of all of these.

    `schedules` has the recurring ones. Time-outs are seconds; None waits for ever. What can go wrong is drawn in
    `mainspring.client.errors`.
    """

    def __init__(
        self,
        settings: "Settings | None" = None,
        *,
        bootstrap: str | None = None,
        actor: str | None = None,
        config: ClientConfig | None = None,
    ) -> None:
        self._core = ClientCore(config or ClientConfig.of(settings, bootstrap=bootstrap, actor=actor))
        self._queries = Queries(self._core)
        self.schedules = Schedules(ScheduleCore(self._core, self._queries), self._handle)

    def submit(
        self,
        job: Submittable,
        args: Arguments = None,
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> JobHandle:
        """Put one job into the log; returns when all in-sync replicas have it, before any verdict.

        `job` is a job object, a call (`function.job(…)`), a registered function, or a name with `args` as a mapping.
        The terms are those of `JobOptions`. The verdict is `handle.accepted`. With `if_exists='return'` a submit of a
        known id is no error: the handle follows the earlier job. Raises `InvalidJobError` (nothing was sent),
        `TopicsMissingError` (nor here), `NotDeliveredError`.
        """
        submission = Submission(job, args)
        adopt = adopts(if_exists)
        return self._handle(drive(self._core.submit(submission, to_options(terms), reason, adopt=adopt)))

    def submit_many(
        self,
        jobs: Iterable[Submission | Submittable],
        *,
        reason: str = "",
        if_exists: IfExists = "raise",
        **terms: Unpack[Terms],
    ) -> list[JobHandle]:
        """Put many jobs into the log with one flush; the handles come in the order of the jobs.

        All are checked before the first is sent, so an `InvalidJobError` means that none was. The terms are for all; a
        `Submission` has its own, which win. `NotDeliveredError.job_ids` may be missing; all others are in.
        """
        watches = self._core.submit_many(jobs, to_options(terms), reason, adopt=adopts(if_exists))
        return [self._handle(watch) for watch in watches]

    def cancel(
        self, job_id: str, reason: str = "", *, timeout: float | None = TIMEOUT_S, wait: bool = True
    ) -> CancelOutcome:
        """Ask that a job does not run, or stops. True in a condition if it took effect.

        A job that waits is cancelled at once and never starts. One that runs is told, and the outcome known when its
        attempt has ended; if that takes longer than `timeout` (or `wait` is False) the outcome is `pending`: the cancel
        stands. Safe to repeat. Raises `VerdictTimeoutError`, `InvalidJobError`, `NotDeliveredError`.
        """
        return drive(self._core.cancel(job_id, reason, Deadline(timeout), wait_for_end=wait))

    def reschedule(
        self,
        job_id: str,
        *,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        reason: str = "",
        timeout: float | None = TIMEOUT_S,
    ) -> datetime:
        """Give a waiting job another time: an instant, or a delay from now. Returns when it is due.

        Raises `CommandRejectedError` (NOT_WAITING, ALREADY_TERMINAL, UNKNOWN_JOB) and `VerdictTimeoutError`.
        """
        return drive(self._core.reschedule(job_id, run_at, delay, reason, Deadline(timeout)))

    def retry(
        self, job_id: str, reason: str = "", *, new_job_id: str | None = None, timeout: float | None = TIMEOUT_S
    ) -> JobHandle:
        """Run a terminal job again, as a new job with `retry_of`. Returns its handle once it is accepted.

        Raises `CommandRejectedError` (NOT_TERMINAL, UNKNOWN_JOB), `VerdictTimeoutError`.
        """
        return self._handle(drive(self._core.retry(job_id, new_job_id, reason, Deadline(timeout))))

    def handle(self, job_id: str, *, since: datetime | None = None) -> JobHandle:
        """A handle for a job that was submitted earlier or elsewhere. Nothing is asked until it is used.

        The first use reads the job's partition of `events` from `since`, else from the time in the id (drawn
        ids have one), else from the beginning: about a microsecond per event.
        """
        return self._handle(self._core.known(job_id, since))

    def get(self, job_id: str, *, timeout: float | None = TIMEOUT_S, fresh: bool = True) -> JobInfo:
        """All about one job, from the view; without a view from its partition of `events` (cost as for `handle`).

        `fresh` waits until this client's own commands are decided and seen by the view. Raises `JobNotFoundError`,
        `ViewBehindError`, `VerdictTimeoutError`.
        """
        return drive(self._queries.get(job_id, Deadline(timeout), fresh=fresh))

    def list(
        self,
        filters: Filters | None = None,
        *,
        order: "JobOrder | str" = "newest",
        limit: int = 100,
        cursor: str | None = None,
        timeout: float | None = TIMEOUT_S,
        fresh: bool = True,
    ) -> "JobPage":
        """One page of jobs from the view; `cursor` is `next_cursor` of the page before. `fresh` as in `get`.

        Raises `ViewUnavailableError`, `ViewBehindError`.
        """
        asked = self._queries.page(filters or Filters(), order, limit, cursor, Deadline(timeout), fresh=fresh)
        return drive(asked)

    def history(self, job_id: str, *, timeout: float | None = TIMEOUT_S) -> Sequence[HistoryEntry]:
        """Every event of a job, refused commands and reports included, from the log (cost as for `handle`)."""
        return drive(self._queries.history(job_id, Deadline(timeout)))

    def close(self) -> None:
        """Wait for commands on their way; whoever waits for a job gets `ClientClosedError`. Handles end with it."""
        self._core.close()
        self._queries.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _handle(self, watch: Watch) -> JobHandle:
        return JobHandle(self._core, self._queries, watch)
