"""Finished jobs leave the table by count and by age; until then their id is known."""

from mainspring.processors.core import Rules
from mainspring.schemas.codes import RejectCode
from mainspring.schemas.events import CommandRejected, JobSubmitted, ReportRefused
from tests.core.spec import NOON, Partition


def run(partition: Partition, *job_ids: str) -> Partition:
    for job_id in job_ids:
        partition.submit(job_id).start(job_id).succeed(job_id).later(1).tick()
    return partition


def test_the_oldest_finished_jobs_leave_when_there_are_too_many() -> None:
    partition = run(Partition(Rules(partitions=4, history_max_count=9)), "a", "b", "c", "d", "e")
    assert sorted(partition.rows.states) == ["c", "d", "e"], "a share of 9 in 4 partitions is 3"
    assert sorted(partition.rows.specs) == ["c", "d", "e"]
    assert partition.core.terminal == 3


def test_finished_jobs_leave_when_they_are_too_old_and_unfinished_ones_never() -> None:
    partition = run(Partition(Rules(history_max_age_ms=3_600_000)), "a").submit("waits", delay_ms=10**9)
    wake = partition.core.wake_at()
    assert wake is not None
    assert wake.wall_ms is not None
    assert NOON + 3_600_000 <= wake.wall_ms <= NOON + 3_660_000
    partition.later(wake.wall_ms - partition.now.wall_ms - 1).tick()
    assert "a" in partition.rows.states
    partition.later(1).tick()
    assert list(partition.rows.states) == ["waits"]


def test_a_known_id_is_refused_and_one_that_has_left_is_new_again() -> None:
    partition = run(Partition(Rules(partitions=1, history_max_count=1)), "a", "b")
    assert partition.submit("b").event(CommandRejected).reject_code == RejectCode.DUPLICATE_JOB
    assert partition.submit("a").event(JobSubmitted).revision == 1


def test_a_late_report_for_a_job_that_has_left_is_kept_as_evidence() -> None:
    partition = run(Partition(Rules(partitions=1, history_max_count=0)), "a")
    assert partition.succeed("a", attempt=1).event(ReportRefused).refusal == "UNKNOWN_JOB"


def test_a_new_owner_forgets_in_the_same_order() -> None:
    partition = run(Partition(), "a", "b", "c")
    partition.rules = Rules(partitions=1, history_max_count=2)
    partition.rows.states = dict(reversed(partition.rows.states.items()))
    assert sorted(partition.taken_over().tick().rows.states) == ["b", "c"]
