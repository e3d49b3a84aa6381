"""The plan of the demo holds what the demo promises to show, and is written down as it is."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from mainspring.cli.demo.jobs import app
from mainspring.cli.demo.plan import MEANWHILE, PARTITIONS, bound, make_plan, write_plan
from mainspring.jobs import ConcurrencyModel, JobCall, JobPriority
from mainspring.jobs.spec import to_spec
from mainspring.schemas.common import JobStatus
from mainspring.topics import partition_for

PLAN = make_plan()
SPECS = {
    planned.job_id: to_spec(planned.submission.job, planned.submission.args, options=planned.submission.options)
    for planned in PLAN
}


def test_each_job_of_the_plan_has_an_id_of_its_own_and_is_submitted_under_it() -> None:
    assert len(SPECS) == len(PLAN)
    assert all(spec.job_id == job_id for job_id, spec in SPECS.items())


def test_the_plan_has_each_priority_each_concurrency_model_each_end_and_both_now_and_later() -> None:
    calls = [planned.submission.job for planned in PLAN]
    models = {call.handler.model for call in calls if isinstance(call, JobCall)}

    assert {spec.priority for spec in SPECS.values()} == set(JobPriority)
    assert models == {ConcurrencyModel.ASYNC, ConcurrencyModel.THREAD, ConcurrencyModel.PROCESS}
    assert {planned.expected.status for planned in PLAN} == {status for status in JobStatus if status.is_terminal}
    assert {bool(spec.delay_ms) for spec in SPECS.values()} == {True, False}


def test_every_handler_of_the_demo_is_used_by_the_plan() -> None:
    assert {spec.name for spec in SPECS.values()} == set(app.handlers)


def test_what_may_not_start_before_its_time_is_submitted_with_that_delay() -> None:
    for planned in PLAN:
        if planned.expected.attempts:
            assert (SPECS[planned.job_id].delay_ms or 0) == planned.expected.not_before_ms


def test_jobs_submitted_while_a_scheduler_is_dead_reach_every_partition() -> None:
    ids = [planned.job_id for planned in PLAN if planned.kind is MEANWHILE]

    assert {partition_for(job_id.encode(), PARTITIONS) for job_id in ids} == set(range(PARTITIONS))


def test_what_a_schedule_fires_has_the_id_of_its_second_once_the_first_is_known() -> None:
    whole = bound(PLAN, datetime(2030, 1, 1, 12, 0, 58, tzinfo=UTC))

    fired = [planned.job_id for planned in whole if planned.is_fired]
    assert fired[:3] == ["pulse@2030-01-01T12:00:58Z", "pulse@2030-01-01T12:00:59Z", "pulse@2030-01-01T12:01:00Z"]
    assert [planned for planned in whole if not planned.is_fired] == [job for job in PLAN if not job.is_fired]


def test_the_written_plan_names_each_job_and_how_it_must_end(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path / "plan.json")

    written = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))

    assert [line["job_id"] for line in written] == [planned.job_id for planned in PLAN]
    assert Counter(line["status"] for line in written) == Counter(planned.expected.status.name for planned in PLAN)
    assert all(line["result"] is not None for line in written if line["status"] == "COMPLETED")
