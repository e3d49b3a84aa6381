"""The kit and a real installation on a real broker: the same jobs come to the same ends."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from mainspring.client import Client, ClientConfig, CommandRejectedError, JobEndedError
from mainspring.processors.core import Rules
from mainspring.processors.scheduler import Scheduler, SchedulerConfig
from mainspring.schemas import Codec
from mainspring.schemas.events import JobCompleted, JobStarted
from mainspring.testing import Mainspring
from mainspring.topics import Connection, Topology
from mainspring.topics.admin import apply
from mainspring.workers import Registry, Worker, WorkerConfig
from tests.testing import mixed_jobs

PATIENCE_S = 60.0
PARTITIONS = 2


@contextmanager
def _installation(bootstrap: str, prefix: str) -> Iterator[Client]:
    connection, codec = Connection(bootstrap), Codec.embedded()
    topology = Topology(prefix=prefix, partitions=PARTITIONS, work_partitions=PARTITIONS)
    apply(connection, topology)
    rules = Rules(partitions=PARTITIONS)
    scheduler = Scheduler(
        SchedulerConfig(connection=connection, topology=topology, codec=codec, rules=rules, slot=prefix)
    )
    worker = Worker(
        WorkerConfig(connection=connection, topology=topology, codec=codec, slots=20), Registry(mixed_jobs.app)
    )
    stop = threading.Event()
    lives = [threading.Thread(target=life, args=(stop,)) for life in (scheduler.run, worker.run)]
    with ExitStack() as ending:
        for life in lives:
            life.start()
            ending.callback(life.join)
        ending.callback(stop.set)
        config = ClientConfig(connection=connection, topology=topology, codec=codec, actor="test")
        yield ending.enter_context(Client(config=config))


def _outcomes(client: Client | Mainspring, now: datetime) -> list[tuple[Any, ...]]:
    scenarios = mixed_jobs.scenarios(now)
    handles: list[Any] = [
        client.submit(each.job, each.arguments, job_id=each.job_id, **_terms(each)) for each in scenarios
    ]
    for each in scenarios:
        if each.cancelled:
            assert client.cancel(each.job_id, "as planned", timeout=PATIENCE_S)
    return [(each.job_id, *_outcome(client, handle)) for each, handle in zip(scenarios, handles, strict=True)]


def _terms(scenario: mixed_jobs.Scenario) -> dict[str, Any]:
    names = ("queue", "delay", "start_deadline")
    return {name: value for name in names if (value := getattr(scenario.options, name)) is not None}


def _outcome(client: Client | Mainspring, handle: Any) -> tuple[Any, ...]:
    """How it ended, what was raised, and every transition."""
    try:
        end: object = handle.result(timeout=PATIENCE_S)
    except CommandRejectedError as error:
        return type(error).__name__, error.code, error.status
    except JobEndedError as error:
        cause = getattr(error, "error", None)
        end = (
            type(error).__name__,
            error.attempts,
            getattr(error, "reason", None),
            cause and (cause.type, cause.message),
        )
    info = client.get(handle.job_id, timeout=PATIENCE_S)
    told = [_told(entry.event) for entry in client.history(handle.job_id, timeout=PATIENCE_S)]
    return end, info.status, info.attempts, info.ended_code, info.ended_by, info.ended_reason, told


def _told(event: Any) -> tuple[Any, ...]:
    """An event without what differs by nature: its place, its time, and who ran it."""
    fields = ("revision", "attempt", "reason", "cancel_code", "reject_code", "retries", "lost", "delay_ms", "result")
    return type(event).__name__, *((name, getattr(event, name)) for name in fields if hasattr(event, name))


@pytest.mark.broker
@pytest.mark.slow
def test_the_same_jobs_come_to_the_same_ends_in_the_kit_and_on_a_real_broker(kafka: str, prefix: str) -> None:
    # given
    with Mainspring(mixed_jobs.app, slots=20) as kit:
        expected = _outcomes(kit, kit.now)

    # when
    with _installation(kafka, prefix) as client:
        found = _outcomes(client, datetime.now(UTC))

    # then
    assert found == expected
    assert {JobStarted, JobCompleted} <= {type(event) for event in kit.events()}


def test_the_mixture_has_every_end() -> None:
    with Mainspring(mixed_jobs.app, slots=20) as kit:
        outcomes = _outcomes(kit, kit.now)

    ends = {outcome[2].name for outcome in outcomes if hasattr(outcome[2], "name")}
    refusals = {outcome[1] for outcome in outcomes if isinstance(outcome[1], str)}
    assert {"COMPLETED", "FAILED", "TIMED_OUT", "CANCELLED"} <= ends
    assert {"DuplicateJobError", "CommandRejectedError"} <= refusals
