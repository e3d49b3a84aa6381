"""A warm standby on a real broker: it follows what others own, and a takeover reads the tail only."""

import signal
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mainspring.processors.engine.loop import Engine
from mainspring.schemas import JobSubmitted
from tests.engine.support import Installation, installation
from tests.engine.test_due_index import index, restored
from tests.engine.test_kill import dying_scheduler

pytestmark = pytest.mark.broker

PARTITIONS = 2
PENDING = 30_000
LATER_MS = 86_400_000


def standby(here: Installation, state_dir: Path, slot: str = "b") -> Engine:
    """A scheduler's engine that follows what it does not own."""
    return here.engine(slot, state_dir=state_dir, standby=True)


def is_warm(engine: Engine) -> bool:
    """Whether it follows all that it does not own, and was behind in none when it looked last."""
    lags, status = engine.standby_lags(), engine.status()
    return sorted([*lags, *status.ready]) == [0, 1] and len(lags) > 0 and not any(lags.values())


def submit_later(here: Installation, count: int, name: str = "job") -> None:
    """Submits jobs for tomorrow and waits until they are accepted."""
    before = len(here.events(JobSubmitted))
    run_at_ms = time.time_ns() // 1_000_000 + LATER_MS
    here.submit((f"{name}-{number}" for number in range(count)), run_at_ms=run_at_ms)
    here.until(lambda: len(here.events(JobSubmitted)) == before + count)


def test_a_standby_reads_only_the_tail_when_the_owner_of_many_jobs_is_killed(
    kafka: str, prefix: str, tmp_path: Path
) -> None:
    with installation(kafka, prefix, partitions=PARTITIONS) as here:
        with dying_scheduler(here, "never", 0, str(tmp_path / "owner")) as owner:
            # Given a standby that follows an owner with many pending jobs,
            heir = standby(here, tmp_path / "heir")
            submit_later(here, PENDING)
            here.until(lambda: is_warm(heir))

            # when the owner is killed,
            owner.send_signal(signal.SIGKILL)
            owner.wait()
        with capture_logs() as lines:
            here.ready()

        # then hardly a record of the changelog is read before every partition decides,
        taken = [line for line in lines if line["event"] == "partition ready"]
        print("taken over:", [(line["partition"], line["rows"], line["took_ms"]) for line in taken])
        assert len(taken) == 1
        assert sum(line["rows"] for line in taken) <= 100
        # and nothing is missing: neither in what it knows nor on its disk.
        assert sum(program.counter for program in heir.programs().values()) == PENDING
        assert heir.standby_lags() == {}
        here.drop(heir)
        assert index(here, tmp_path / "heir", "b") == restored(here, tmp_path / "afresh", "c")
