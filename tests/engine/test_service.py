"""A scheduler as a process: started, stopped, killed and supervised."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mainspring.processors.engine.errors import ConfigurationError, FatalKafkaError, FaultKind, TransactionError
from mainspring.processors.engine.program import Position
from mainspring.processors.engine.tables import MemoryTables
from mainspring.processors.scheduler import Scheduler, run_scheduler, supervise_schedulers
from mainspring.processors.scheduler.rows import PROTOCOL, PositionRows, ProtocolError
from mainspring.processors.scheduler.service import EXIT_CONFIGURATION, EXIT_OK
from mainspring.schemas import JobCompleted, JobSubmitted, PositionRow
from mainspring.telemetry import metrics
from mainspring.topics import Connection, Topology
from tests.engine.fake_worker import FakeWorker
from tests.engine.faults import Faults, FaultyKafka, client_options, failing, faulty
from tests.engine.support import CODEC, Installation, installation, txns_are_whole

ROOT = Path(__file__).parents[2]

PROCESS = """
import sys
from pathlib import Path
from typing import Any
from mainspring.processors.core import Rules
from mainspring.processors.scheduler import SchedulerConfig, run_scheduler
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
bootstrap, prefix, partitions, directory = sys.argv[1:]
topology = Topology(prefix=prefix, partitions=int(partitions), work_partitions=2)
sys.exit(run_scheduler(SchedulerConfig(
    connection=Connection(bootstrap), topology=topology, codec=Codec.embedded(),
    rules=Rules(partitions=int(partitions)),
    session_timeout_ms=2_000, state_dir=Path(directory), linger_ms=5,
)))
"""


def command(here: Installation, state_dir: Path) -> list[str]:
    topology = here.topology
    arguments = [here.connection.bootstrap, topology.prefix, str(topology.partitions), str(state_dir)]
    return [sys.executable, "-c", PROCESS, *arguments]


def held_slots(state_dir: Path) -> dict[str, int]:
    """Process ids by slot, as the locks have them."""
    locks = state_dir.glob("*/*.lock")
    return {lock.stem: int(text) for lock in locks if (text := lock.read_text().strip())}


def has_more_than(here: Installation, kind: type, count: int) -> bool:
    return len(here.events(kind)) > count


@pytest.mark.broker
def test_a_scheduler_process_that_is_told_to_stop_commits_leaves_and_ends_with_0(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix) as here:
        worker = FakeWorker(here.connection, here.topology)
        here.helpers.append(worker)
        process = subprocess.Popen(command(here, tmp_path))
        here.submit([f"job-{number}" for number in range(20)])
        here.until(lambda: len(here.events(JobCompleted)) == 20)
        here.submit([f"more-{number}" for number in range(20)])

        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == EXIT_OK

        left_at = time.monotonic()
        here.engine("heir")
        here.ready()
        # It said goodbye: nobody waits for its session to run out.
        assert time.monotonic() - left_at < 1.9
        here.until(lambda: len(here.events(JobCompleted)) == 40)
        assert len(here.all_events()) == 120


@pytest.mark.broker
def test_supervised_schedulers_survive_the_kill_of_each_in_turn(kafka: str, prefix: str, tmp_path: Path) -> None:
    with installation(kafka, prefix, partitions=4) as here:
        here.helpers.append(FakeWorker(here.connection, here.topology))
        stop = threading.Event()
        codes: list[int] = []

        def run() -> None:
            codes.append(supervise_schedulers(2, command(here, tmp_path), here.config(state_dir=tmp_path), stop))

        thread = threading.Thread(target=run)
        thread.start()
        try:
            done = 0
            for kill in range(4):
                here.submit([f"job-{kill}-{number}" for number in range(25)])
                here.until(partial(has_more_than, here, JobSubmitted, done))
                here.until(lambda: len(held_slots(tmp_path)) == 2)
                os.kill(sorted(held_slots(tmp_path).items())[kill % 2][1], signal.SIGKILL)
                done += 25
                here.until(partial(has_more_than, here, JobCompleted, done - 1))
        finally:
            stop.set()
            thread.join(30)

        assert codes == [0]
        events = here.all_events()
        assert len(events) == 300
        assert txns_are_whole(events)
        assert set(held_slots(tmp_path)) == {f"{here.config().slot_name}-0", f"{here.config().slot_name}-1"}


@pytest.mark.broker
def test_a_scheduler_that_was_shut_out_begins_anew_by_itself(kafka: str, prefix: str, tmp_path: Path) -> None:
    with installation(kafka, prefix) as here:
        here.helpers.append(FakeWorker(here.connection, here.topology))
        faults = Faults()
        through = faulty(here.connection, here.topology, faults)
        config = here.config(slot="a", state_dir=tmp_path)
        scheduler = Scheduler(config, kafka=through)
        stop = threading.Event()
        thread = threading.Thread(target=scheduler.run, args=(stop,))
        thread.start()
        try:
            here.until(lambda: scheduler.status().is_ready and len(scheduler.status().ready) == 2)
            here.submit(["one"])
            here.until(lambda: here.events(JobCompleted))

            through("b").fence(here.topology.transactional_id("a"))
            here.submit(["two"])
            here.until(lambda: len(here.events(JobCompleted)) == 2)

            assert scheduler.status().restarts == 1
            assert len(here.all_events()) == 6
        finally:
            stop.set()
            thread.join(20)


@pytest.mark.broker
def test_a_scheduler_that_is_shut_out_again_and_again_gives_up(kafka: str, prefix: str, tmp_path: Path) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        faults = Faults()
        faults.before["begin"] = failing(FaultKind.FENCED, "_FENCED")
        clock = FastClock()
        scheduler = Scheduler(
            here.config(slot="a", state_dir=tmp_path), kafka=faulty(here.connection, here.topology, faults), clock=clock
        )
        here.submit(["one"])

        with pytest.raises(FatalKafkaError, match="give each its own"):
            scheduler.run(threading.Event())

        assert scheduler.status().restarts == 6
        assert here.all_events() == []


def test_a_scheduler_that_cannot_reach_its_broker_tries_again_with_its_tables_for_as_long_as_it_takes(
    tmp_path: Path,
) -> None:
    tries, stop = 20, threading.Event()
    asked: list[str] = []
    connection = Connection("127.0.0.1:1")
    topology = Topology(prefix="nowhere.")

    class Unreachable(FaultyKafka):
        def output(self, transactional_id: str) -> Any:
            asked.append(transactional_id)
            if len(asked) == tries:
                stop.set()
            raise TransactionError(FaultKind.RETRIABLE, "_TRANSPORT", "no broker")

    here = Installation(connection, topology)
    scheduler = Scheduler(
        here.config(slot="a", state_dir=tmp_path, patience_ms=1),
        kafka=lambda slot: Unreachable(connection, client_options(topology, slot), Faults()),
        clock=FastClock(),
    )

    scheduler.run(stop)

    assert len(asked) >= tries
    assert scheduler.status().restarts == 0
    assert not scheduler.status().is_ready


@pytest.mark.broker
def test_what_only_a_person_can_mend_ends_the_process_with_its_own_code(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        config = here.config(slot="not a name", state_dir=tmp_path)

        assert run_scheduler(config, threading.Event()) == EXIT_CONFIGURATION
        with pytest.raises(ConfigurationError, match="slot"):
            Scheduler(config).run(threading.Event())


@pytest.mark.broker
def test_what_was_decided_is_counted_when_it_is_committed(kafka: str, prefix: str) -> None:
    def submitted() -> float:
        return float(metrics.EVENTS.labels(type="JobSubmitted")._value.get())

    with installation(kafka, prefix, partitions=1) as here:
        faults = Faults()
        here.engine(kafka=faulty(here.connection, here.topology, faults))
        here.ready()
        before = submitted()
        faults.once("before", "flush", failing(FaultKind.ABORT))

        here.submit([f"job-{number}" for number in range(7)])
        here.until(lambda: len(here.events(JobSubmitted)) == 7)

        assert submitted() == before + 7


def test_a_partition_that_a_later_version_has_written_is_not_taken_over() -> None:
    rows = PositionRows(CODEC, "c", "f", "a")
    position = Position(offsets={"c": 1, "f": 2, "a": 3}, counter=4, txn_id=5, owner="me", written_at_ms=6, clock_ms=7)
    table = MemoryTables().open(0, "o")
    key, value = rows.encode(position)
    table.write([(key, value)], 1, 1)
    assert rows.read(table) == position

    later = PositionRow(
        next_seq=4,
        txn_id=5,
        commands_offset=1,
        followups_offset=2,
        attempts_offset=3,
        owner="a later one",
        written_at_ms=6,
        protocol=PROTOCOL + 1,
    )
    table.write([(key, CODEC.encode(later))], 2, 2)

    with pytest.raises(ProtocolError, match=f"a later one has written this partition at protocol level {PROTOCOL + 1}"):
        rows.read(table)


class FastClock:
    """Time as it is, without the pauses."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def pause(self, delay_ms: int) -> None:
        pass
