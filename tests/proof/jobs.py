"""The jobs of the proofs. Each writes down, outside the scheduler, that an attempt began and that it ended.

A line is appended with one write, so a killed process leaves whole lines; the file system keeps them, for only
processes are killed here and not the machine. Jobs that stand for side effects that matter sync them all the same, and
take the time that it takes.
"""

import asyncio
import functools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainspring.jobs import App, ConcurrencyModel, RetryPolicy, current_context

DIRECTORY_VARIABLE = "PROOF_LEDGER"
LIFE_VARIABLE = "PROOF_LIFE"

app = App("proof")


@functools.cache
def _ledger(process: int) -> int:
    path = Path(os.environ[DIRECTORY_VARIABLE]) / f"{process}.tsv"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def note(what: str, *, sync: bool = False) -> None:
    """Append one line: what happened, job, attempt, monotonic nanoseconds, process id, life of the worker."""
    context, process = current_context(), os.getpid()
    fields = (what, context.job_id, context.attempt, time.monotonic_ns(), process, os.environ[LIFE_VARIABLE])
    line = "\t".join(map(str, fields)) + "\n"
    os.write(_ledger(process), line.encode())
    if sync:
        os.fsync(_ledger(process))


@app.job
async def quick() -> None:
    """Does nothing."""
    note("began")
    note("ended")


@app.job
async def nap(seconds: float) -> str:
    """Waits on the event loop."""
    note("began")
    await asyncio.sleep(seconds)
    note("ended")
    return "rested"


@app.job
def block(seconds: float) -> str:
    """Holds a thread."""
    note("began")
    time.sleep(seconds)
    note("ended")
    return "rested"


@app.job(model=ConcurrencyModel.PROCESS)
def crunch(seconds: float) -> str:
    """Holds a process of its own."""
    note("began")
    time.sleep(seconds)
    note("ended")
    return "rested"


@contextmanager
def _side_effects() -> Iterator[None]:
    """Writes down that it began, and how it came out: also that it was stopped, for then it runs no more."""
    note("began", sync=True)
    try:
        yield
    except asyncio.CancelledError:
        note("stopped", sync=True)
        raise
    except RuntimeError:
        note("failed", sync=True)
        raise
    note("ended", sync=True)


@app.job
async def work(seconds: float) -> None:
    """Takes its time between two side effects."""
    with _side_effects():
        await asyncio.sleep(seconds)


@app.job(retry=RetryPolicy(max_retries=1, base_delay=0.2))
async def flaky(seconds: float) -> None:
    """Fails at the end of its first attempt."""
    with _side_effects():
        await asyncio.sleep(seconds)
        if current_context().attempt == 1:
            raise RuntimeError("flaky")


@app.job
async def deadly(times: int) -> None:
    """Kills its worker in so many attempts."""
    with _side_effects():
        if current_context().attempt <= times:
            os.kill(os.getpid(), signal.SIGKILL)
