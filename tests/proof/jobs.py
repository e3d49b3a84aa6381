"""The jobs of the proofs. Each writes down, outside the scheduler, that an attempt began and that it ended.

A line is appended with one write, so a killed process leaves whole lines; the file system keeps them, for only
processes are killed here and not the machine.
"""

import asyncio
import functools
import os
import time
from pathlib import Path

from mainspring.jobs import App, ConcurrencyModel, current_context

DIRECTORY_VARIABLE = "PROOF_LEDGER"
LIFE_VARIABLE = "PROOF_LIFE"

app = App("proof")


@functools.cache
def _ledger(process: int) -> int:
    path = Path(os.environ[DIRECTORY_VARIABLE]) / f"{process}.tsv"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def note(what: str) -> None:
    """Append one line: what happened, job, attempt, monotonic nanoseconds, process id, life of the worker."""
    context, process = current_context(), os.getpid()
    fields = (what, context.job_id, context.attempt, time.monotonic_ns(), process, os.environ[LIFE_VARIABLE])
    line = "\t".join(map(str, fields)) + "\n"
    os.write(_ledger(process), line.encode())


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
