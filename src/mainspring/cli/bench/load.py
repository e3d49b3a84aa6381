"""Jobs put in, and waited for."""

import gc
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mainspring.cli.errors import CliError
from mainspring.cli.output import note

if TYPE_CHECKING:
    from mainspring.client import Client, JobHandle, Submission

__all__ = [
    "many_handles",
    "patience_s",
    "rest_until_due",
    "run_through",
    "stage",
    "submit",
    "submit_all",
    "submit_each",
    "wait_for",
]

_CHUNK = 5_000
_YOUNG_OBJECTS = 50_000
_PATIENCE_S = 600.0
_SLOWEST_PER_S = 500
_TOLD_EVERY = 100_000


def stage(what: str) -> None:
    """Says on stderr what is done now, with the time and the load of the machine."""
    note(f"[dim]{time.strftime('%H:%M:%S')}  load {os.getloadavg()[0]:4.1f}  {what}[/]")


def patience_s(jobs: int) -> float:
    """How long so many jobs may take on a machine that has other things to do."""
    return _PATIENCE_S + jobs / _SLOWEST_PER_S


def submit(
    client: "Client", count: int, *, run_at: datetime | None = None, delay: float | None = None
) -> "list[JobHandle]":
    """Puts in so many no-op jobs, in chunks that are acknowledged one after the other."""
    terms: dict[str, Any] = {"run_at": run_at, "delay": delay}
    given = {name: value for name, value in terms.items() if value is not None}
    return submit_each(client, ["noop"] * count, [{}] * count, **given)


def submit_each(
    client: "Client", names: Sequence[str], args: Sequence[Mapping[str, Any]], **terms: Any
) -> "list[JobHandle]":
    """Puts in jobs of these names with these arguments; the terms are for all."""
    from mainspring.client import Submission

    return submit_all(client, [Submission(name, each) for name, each in zip(names, args, strict=True)], **terms)


def submit_all(client: "Client", jobs: "Sequence[Submission]", **terms: Any) -> "list[JobHandle]":
    """Puts in these jobs, in chunks that are acknowledged one after the other; the terms are for all."""
    handles: list[JobHandle] = []
    for first in range(0, len(jobs), _CHUNK):
        if first and first % _TOLD_EVERY == 0:
            stage(f"  {first:,} submitted")
        handles += client.submit_many(jobs[first : first + _CHUNK], **terms)
    return handles


def wait_for(handles: "Sequence[JobHandle]", timeout_s: float | None = None) -> list[Any]:
    """The results of jobs, once all have ended. Raises `CliError` for one that did not complete in time."""
    from mainspring.client.errors import ClientError

    deadline = time.monotonic() + (patience_s(len(handles)) if timeout_s is None else timeout_s)
    results: list[Any] = []
    for number, handle in enumerate(handles):
        if number and number % _TOLD_EVERY == 0:
            stage(f"  {number:,} have ended")
        try:
            results.append(handle.result(timeout=max(0.0, deadline - time.monotonic())))
        except ClientError as error:
            raise CliError(
                f"Job {handle.job_id} did not complete, so there is nothing to tell of speed.", why=str(error)
            ) from error
    return results


def rest_until_due(handles: "Sequence[JobHandle]", due_ns: int, *, late: str, hint: str, then: str) -> float:
    """Sleeps until jobs are due, all of which must have been accepted by then; returns how many seconds that was.

    `late` says what would have happened before, `then` what comes next. Raises `CliError` with `hint`.
    """
    handles[-1].accepted(patience_s(len(handles)))
    spare_s = due_ns / 1e9 - time.time()
    if spare_s <= 0:
        raise CliError(f"The last of {len(handles):,} jobs was accepted {-spare_s:.1f} s after {late}.", hint=hint)
    stage(f"accepted {spare_s:.1f} s before that; {then}")
    time.sleep(spare_s)
    return spare_s


@contextmanager
def many_handles() -> Iterator[None]:
    """For a process that keeps a hundred thousand handles: the garbage collector is told to look less often.

    With its usual threshold it would look at all of them again and again, a fifth of the client's time.
    """
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def run_through(client: "Client", count: int) -> float:
    """Runs so many no-op jobs from submit to result; returns the seconds that it took."""
    began_s = time.monotonic()
    wait_for(submit(client, count))
    return time.monotonic() - began_s
