"""A real scheduler and worker in threads of the test, and the jobs that they run."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mainspring.client import ClientConfig
from mainspring.jobs import App, current_context
from mainspring.processors.projector import Projector, ProjectorConfig
from mainspring.scheduler.embedded import EmbeddedOptions, EmbeddedProcessors
from mainspring.schemas import Codec
from mainspring.workers import Registry

app = App("client-tests")
executed: dict[str, int] = {}
"""How often the handler of a job began, by the name that the job was given: counted outside the scheduler."""
_lock = threading.Lock()


def note(name: str) -> None:
    """Count one execution."""
    with _lock:
        executed[name] = executed.get(name, 0) + 1


@app.job
async def nap(name: str, seconds: float) -> str:
    """Sleeps, and returns its name."""
    note(name)
    await asyncio.sleep(seconds)
    return name


@app.job
async def stumble(name: str, seconds: float) -> None:
    """Sleeps, and fails."""
    note(name)
    await asyncio.sleep(seconds)
    raise RuntimeError(name)


@app.job
def block(name: str, seconds: float) -> str:
    """Holds a thread."""
    note(name)
    threading.Event().wait(seconds)
    return name


@app.job
def tick(label: str) -> str:
    """Counts the job that it runs as, and ends at once, unless its label is held; returns the label."""
    note(current_context().job_id)
    if (gate := gates.get(label)) is not None:
        gate.wait(60)
    return label


gates: dict[str, threading.Event] = {}
"""What `tick` waits for, by label."""


@contextmanager
def projecting(config: ClientConfig) -> Iterator[None]:
    """A projector that writes the view of the config."""
    assert config.view_url is not None
    projector = Projector(
        ProjectorConfig(connection=config.connection, topology=config.topology, codec=config.codec, url=config.view_url)
    )
    stop = threading.Event()
    thread = threading.Thread(target=projector.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def running_cluster(bootstrap: str) -> Iterator[ClientConfig]:
    """Topics of its own, one scheduler and one worker; gives the way to it."""
    deaths: list[BaseException] = []
    options = EmbeddedOptions(bootstrap=bootstrap, prefix=f"t{secrets.token_hex(6)}.", max_concurrency=64)
    processors = EmbeddedProcessors(options, Registry(app), deaths.append)
    connection = processors.start_kafka()
    processors.start(connection)
    try:
        yield ClientConfig(
            connection=connection, topology=processors.topology, codec=Codec.embedded(), actor="ada@host"
        )
    finally:
        processors.stop_worker()
        processors.stop_scheduler()
    assert deaths == []
