"""A sound log in memory for each test to read or to damage."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mainspring.schemas import Codec
from mainspring.topics import Topology
from tests.support.every_life import every_life
from tests.support.scheduler_double import SchedulerDouble
from tests.support.synthetic_log import MemoryLog


@dataclass(frozen=True, kw_only=True)
class Written:
    """A log, and the double that wrote it."""

    log: MemoryLog
    double: SchedulerDouble
    codec: Codec
    topology: Topology


@pytest.fixture(scope="session")
def codec() -> Codec:
    return Codec.embedded()


@pytest.fixture
def empty(codec: Codec) -> Written:
    topology = Topology(partitions=2, queues=("default", "bulk"))
    log = MemoryLog(topology)
    return Written(log=log, double=SchedulerDouble(topology, codec, log), codec=codec, topology=topology)


@pytest.fixture
def written(empty: Written) -> Written:
    every_life(empty.double)
    return empty
