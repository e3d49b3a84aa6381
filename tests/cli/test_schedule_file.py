"""Schedules of a file: what its keys mean, and what is refused before anything is sent."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from mainspring.cli.schedule_file import read_schedules
from mainspring.client.schedules.definition import define
from mainspring.jobs.payload import JSON
from mainspring.schemas import Priority
from mainspring.schemas.schedule import CatchUp, CronRule, FoldRule, GapRule, IntervalRule, Overlap
from tests.cli.command_line import Cli

FULL = """
[[schedules]]
id = "backup"
job = "dump"
payload = {disk = "/srv"}
cron = ["30 2 * * MON-FRI", "0 12 * * SAT"]
every = "6h"
exclude = "* 22-23 * * *"
calendars = {holidays = [2027-12-25]}
tz = "Europe/Berlin"
anchor = 2027-01-01T00:00:00Z
start = "2027-01-01T01:00:00+01:00"
jitter = "5m"
gap = "skip"
fold = "both"
queue = "slow"
priority = "HIGH"
tags = ["nightly"]
timeout = "1h"
retries = 2
retry_delay = "10s"
overlap = "buffer-one"
catch_up = "none"
catch_up_window = "30m"
max_runs = 9
pause_on_failure = true
note = "the disks"

[[schedules]]
id = "poll"
job = "poll"
every = "15m"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "schedules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_key_of_a_file_says_what_the_option_of_its_name_says(tmp_path: Path) -> None:
    full, small = read_schedules(written(tmp_path, FULL))

    spec = define(full.id, full.when(), full.job, full.payload, full.options(), JSON, full.policies())  # type: ignore[arg-type]  # the policies are those that are given

    anchor_ms = round(datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1000)
    timing, job = spec.timing, spec.job
    assert timing.rules == (
        CronRule(expression="30 2 * * MON-FRI"),
        CronRule(expression="0 12 * * SAT"),
        IntervalRule(every_ms=6 * 3_600_000, anchor_ms=anchor_ms),
    )
    assert timing.exclude == (CronRule(expression="* 22-23 * * *"),)
    assert [(each.name, each.dates) for each in timing.calendars] == [("holidays", (date(2027, 12, 25).isoformat(),))]
    assert (timing.timezone, timing.start_ms, timing.jitter_ms) == ("Europe/Berlin", anchor_ms, 300_000)
    assert (timing.gap, timing.fold) == (GapRule.SKIP, FoldRule.BOTH)
    assert (job.name, job.payload, job.queue, job.priority) == ("dump", b'{"disk":"/srv"}', "slow", Priority.HIGH)
    assert (job.tags, job.timeout_ms, job.max_retries, job.retry_base_delay_ms) == (("nightly",), 3_600_000, 2, 10_000)
    assert (spec.overlap, spec.catch_up, spec.catch_up_window_ms) == (Overlap.BUFFER_ONE, CatchUp.NONE, 1_800_000)
    assert (spec.max_runs, spec.pause_on_failure, spec.note) == (9, True, "the disks")
    assert (small.options(), small.policies(), small.jitter) == (None, {}, timedelta(0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schedules = 1", "schedules: Input should be a valid list"),
        ("[[schedules]]\nid = 'a'\nevery = '1h'", "schedules.0.job: Field required"),
        ("[[schedules]]\nid = 'a'\njob = 'b'\nevry = '1h'", "schedules.0.evry: Extra inputs"),
        ("[[schedules]]\nid = 'a'\njob = 'b'\njitter = 'soon'", "'soon' is not a duration"),
        ("[[schedules]]\nid = 'a'\njob = 'b'\nstart = 2027-01-01T00:00:00", "must be an instant with Z or an offset"),
        ("[[schedules]]\nid = 'a'\njob = 'b'\nstart = '0001-01-01T00:00:00+14:00'", "before the year 1"),
        ("[[schedules]]\nid = 'a'\njob = 'b'\nevery = 3", 'every: must be a text such as "10m"'),
        ("[[schedules]]\nid = 'a'\njob = 'b'\npayload = {days = [{at = 1979-05-27}]}", "payload: days.0.at is a date"),
        ("#" * (4 << 20) + " ", "has more than 4 MiB"),
        ("[[schedules]]\nid = 'a'\njob = 'b'\n" * 2, "a is there more than once"),
        ("[[schedules]", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_meant_is_a_usage_error_that_names_the_place(
    cli: Cli, tmp_path: Path, text: str, said: str
) -> None:
    done = cli("schedule", "apply", str(written(tmp_path, text)))

    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.replace("│", " ").split())
