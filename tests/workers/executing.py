"""Jobs that are run by an executor alone."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from mainspring.jobs import JobContext
from mainspring.workers.attempt import Attempt, OutcomeKind
from mainspring.workers.executors import JobExecutor
from mainspring.workers.registry import Registry
from tests.support import worker_jobs

MODELS = ("a", "t", "p")
PATIENCE_S = 20.0


@contextlib.contextmanager
def an_executor() -> Iterator[JobExecutor]:
    worker_jobs.gate.clear()
    running = JobExecutor(Registry(worker_jobs.app), slots=4)
    running.start()
    yield running
    worker_jobs.gate.set()
    running.shutdown(5.0)


def attempt_of(
    name: str, timeout_ms: int | None = None, may_retry: bool = False, job_id: str | None = None, **args: Any
) -> Attempt:
    handler = Registry(worker_jobs.app).get(name)
    assert handler is not None
    return Attempt(
        handler=handler,
        context=JobContext(job_id=job_id or f"job-{name}", name=name, attempt=3),
        payload=json.dumps(args).encode(),
        timeout_ms=timeout_ms,
        may_retry=may_retry,
    )


def until(executor: JobExecutor, met: Callable[[], bool]) -> list[Attempt]:
    """Collects until a condition is met."""
    news: list[Attempt] = []
    ends = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < ends, "the condition was not met in time"
        news += executor.collect(wait_s=0.05)
    return news


def run(executor: JobExecutor, *attempts: Attempt) -> list[Attempt]:
    executor.invoke(attempts)
    until(executor, lambda: all(attempt.returned for attempt in attempts))
    executor.collect()
    return list(attempts)


def has_outcome(attempt: Attempt) -> bool:
    return attempt.outcome is not None


def is_over(executor: JobExecutor, attempt: Attempt) -> bool:
    return attempt.returned and executor.running == 0


def kind_of(attempt: Attempt) -> OutcomeKind | None:
    return attempt.outcome.kind if attempt.outcome else None


def error_of(attempt: Attempt) -> tuple[str, str]:
    assert attempt.outcome is not None
    assert attempt.outcome.error is not None, attempt.outcome
    return attempt.outcome.error.type, attempt.outcome.error.message
