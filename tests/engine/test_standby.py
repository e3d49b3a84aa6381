"""A warm standby on a real broker: it follows what others own, and a takeover reads the tail only."""

import signal
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from structlog.testing import capture_logs

from mainspring.log import KafkaLog, verify
from mainspring.processors.engine import standby
from mainspring.processors.engine.loop import Engine
from mainspring.schemas import JobCompleted, JobSubmitted
from tests.engine.fake_worker import FakeWorker
from tests.engine.support import CODEC, Installation, installation
from tests.engine.test_due_index import index, restored
from tests.engine.test_kill import dying_process, dying_scheduler

pytestmark = pytest.mark.broker

PENDING = 30_000
A_FEW = 100
"""Records that may be written between the last reading and a death."""

Lines = list[MutableMapping[str, Any]]


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "LOOK_EVERY_MS", 200)


def follower(here: Installation, state_dir: Path, slot: str) -> Engine:
    """A scheduler's engine that follows what it does not own."""
    return here.engine(slot, state_dir=state_dir, standby=True)


def is_warm(here: Installation, engine: Engine) -> bool:
    """Whether it follows all that it does not own, and was behind in none when it looked last."""
    lags, status = engine.standby_lags(), engine.status()
    return bool(lags) and not any(lags.values()) and {*lags, *status.ready} == set(range(here.topology.partitions))


def submit_later(here: Installation, count: int) -> None:
    """Submits jobs for tomorrow and waits until they are accepted."""
    before = len(here.events(JobSubmitted))
    run_at_ms = time.time_ns() // 1_000_000 + 86_400_000
    here.submit((f"job-{before + number}" for number in range(count)), run_at_ms=run_at_ms)
    here.until(lambda: len(here.events(JobSubmitted)) == before + count)


def run_some(here: Installation, name: str, count: int = 60) -> None:
    """Has jobs run, and waits for the end of each."""
    before = len(here.events(JobCompleted))
    here.submit(f"{name}-{number}" for number in range(count))
    here.until(lambda: len(here.events(JobCompleted)) == before + count)


@contextmanager
def told(event: str) -> Iterator[Lines]:
    """What is logged under a name meanwhile; filled at the end."""
    found: Lines = []
    with capture_logs() as lines:
        yield found
    found += [line for line in lines if line["event"] == event]


@pytest.mark.slow
def test_a_standby_reads_only_the_tail_when_the_owner_of_many_jobs_is_killed(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix) as here:
        with dying_scheduler(here, "never", 0, str(tmp_path / "owner")) as owner:
            # Given a standby that follows an owner with many pending jobs,
            heir = follower(here, tmp_path / "heir", "heir")
            submit_later(here, PENDING)
            here.until(lambda: is_warm(here, heir))

            # when the owner is killed,
            owner.send_signal(signal.SIGKILL)
            owner.wait()
        with told("partition ready") as taken:
            here.ready()

        # then hardly a record of the changelog is read before the partition decides here,
        print("taken over:", [(line["partition"], line["rows"], line["took_ms"]) for line in taken])
        assert len(taken) == 1
        assert taken[0]["rows"] <= A_FEW
        # and nothing is missing: neither in what it knows nor on its disk.
        assert sum(program.counter for program in heir.programs().values()) == PENDING
        assert heir.standby_lags() == {}
        here.drop(heir)
        assert index(here, tmp_path / "heir", "heir") == restored(here, tmp_path / "afresh", "c")


def test_a_standby_that_is_killed_in_the_midst_of_reading_goes_on_from_its_disk(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix) as here:
        # Given a standby that is killed when it has read more rows than a table holds back, and not all,
        owner = here.engine("owner", state_dir=tmp_path / "owner")
        here.ready()
        submit_later(here, 8_000)
        with dying_process(here, "following", 12_000, str(tmp_path / "heir")) as process:
            assert process.wait(60) == -signal.SIGKILL

        # when it starts again, and the owner leaves,
        with told("partition followed") as begun:
            heir = follower(here, tmp_path / "heir", "dying")
            here.ready()
            here.until(lambda: is_warm(here, heir))
        here.drop(owner)
        here.ready()

        # then what was on its disk was not read again, and its disk says what the changelog says.
        assert 0 < sum(line["remaining"] for line in begun[:2]) < 12_000
        here.drop(heir)
        assert index(here, tmp_path / "heir", "dying") == restored(here, tmp_path / "afresh", "c")


def test_a_partition_that_goes_back_and_forth_between_standbys_is_the_same_on_both_disks(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix) as here:
        # Given two schedulers that follow each other,
        here.helpers.append(FakeWorker(here.connection, here.topology))
        one, two = (follower(here, tmp_path / slot, slot) for slot in ("one", "two"))
        here.ready()
        run_some(here, "first")
        here.until(lambda: is_warm(here, one) and is_warm(here, two))

        # when one of them leaves, comes back while jobs run, and the other leaves,
        here.drop(one)
        with told("partition ready") as taken_by_two:
            here.ready()
        run_some(here, "second")
        one = follower(here, tmp_path / "one", "one")
        here.ready()
        run_some(here, "third")
        here.until(lambda: is_warm(here, one) and is_warm(here, two))
        here.drop(two)
        with told("partition ready") as taken_by_one:
            here.ready()
        run_some(here, "fourth")

        # then each takeover read the tail only, every job ran, and the disk says what the log says.
        assert sum(line["rows"] for line in (*taken_by_two, *taken_by_one)) <= A_FEW
        report = verify(KafkaLog(here.connection, here.topology), CODEC)
        assert report.ok, report.findings
        here.drop(one)
        assert index(here, tmp_path / "one", "one") == restored(here, tmp_path / "afresh", "c")


def test_a_standby_waits_behind_an_open_transaction_and_tells_how_far_it_is_behind(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        # Given a transaction in the changelog that nobody ends,
        here.engine("owner")
        here.ready()
        heir = follower(here, tmp_path, "heir")
        here.until(lambda: is_warm(here, heir))
        options = {"transactional.id": f"{prefix}open", "transaction.timeout.ms": 60_000}
        holder = Producer(here.connection.producer_config(**options))
        holder.init_transactions(10)
        holder.begin_transaction()
        holder.produce(here.topology.scheduler_changelog.name, b"never committed", b"Jghost", 0)
        holder.flush()

        # when the owner goes on behind it,
        submit_later(here, 50)

        # then the standby tells its distance and is not unready for it, and goes on when the transaction is over.
        here.until(lambda: heir.standby_lags()[0] > 100)
        assert heir.status().restoring == ()
        holder.abort_transaction(10)
        here.until(lambda: is_warm(here, heir))


def test_a_standby_begins_again_where_the_changelog_begins_when_that_has_moved_past_it(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        here.engine("owner", state_dir=tmp_path / "owner")
        here.ready()
        heir = follower(here, tmp_path / "heir", "heir")
        submit_later(here, 50)
        here.until(lambda: is_warm(here, heir) and _jobs_on_disk(heir) == 50)
        # Given rows that are gone before a standby, which is away, has read them,
        here.drop(heir)
        submit_later(here, 50)
        _delete_rows(here)

        # when it comes back,
        with told("local table is of no use and is wiped") as wiped:
            heir = follower(here, tmp_path / "heir", "heir")
            here.until(lambda: is_warm(here, heir))
        submit_later(here, 20)

        # then it has what there is, and nothing of what was before.
        here.until(lambda: _jobs_on_disk(heir) == 20)
        assert len(wiped) == 1


def test_a_standby_follows_a_changelog_that_was_made_anew_from_its_beginning(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        # Given a standby with rows of a changelog,
        here.engine("owner", state_dir=tmp_path / "owner")
        here.ready()
        heir = follower(here, tmp_path / "heir", "heir")
        submit_later(here, 50)
        here.until(lambda: is_warm(here, heir) and _jobs_on_disk(heir) == 50)

        # when that is deleted and made again,
        name = here.topology.scheduler_changelog.name
        here.make_again(name)

        # then nothing of it is left.
        here.until(lambda: is_warm(here, heir) and _jobs_on_disk(heir) == 0)


def test_rows_that_a_standby_cannot_read_disturb_nothing_that_it_owns(
    kafka: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "REST_MS", 200)
    with installation(kafka, prefix) as here:
        here.helpers.append(FakeWorker(here.connection, here.topology))
        engines = [follower(here, tmp_path / slot, slot) for slot in ("one", "two")]
        here.ready()
        here.until(lambda: all(is_warm(here, engine) for engine in engines))

        # Given rows of a form that nobody here knows, as a later version may write them,
        for number in range(here.topology.partitions):
            here.produce(here.topology.scheduler_changelog, b"Jlater", b"of a later version", number)
        here.flush()

        # when jobs are submitted,
        with capture_logs() as lines:
            run_some(here, "job")

            # then they run, and it is tried again.
            rests = "a standby cannot read the changelog, and rests"
            here.until(lambda: [line["event"] for line in lines].count(rests) > 2)
        assert {line["partition"] for line in lines if line["event"] == rests} == {0, 1}


def _jobs_on_disk(engine: Engine) -> int:
    """In the table of partition 0 of a standby; -1 while it follows nothing."""
    assert engine._standby is not None
    followed = engine._standby._followers.get(0)
    if followed is None or followed.replay.table is None:
        return -1
    return sum(1 for _ in followed.replay.table.scan(b"J"))


def _delete_rows(here: Installation) -> None:
    """Deletes all that is in partition 0 of the changelog, which Kafka refuses while the topic is compacted only."""
    name = here.topology.scheduler_changelog.name
    policy = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[policy])
    for answer in here.admin.incremental_alter_configs([resource]).values():
        answer.result(10)
    for deleted in here.admin.delete_records([TopicPartition(name, 0, -1)]).values():
        deleted.result(10)
