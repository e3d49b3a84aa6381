"""Each benchmark runs at a tiny size and tells what it is to tell. Nothing here is timed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from mainspring.cli.bench.site import Plan, open_site
from mainspring.cli.context import Globals

pytestmark = [pytest.mark.broker, pytest.mark.slow]

LIMITS = {"raw_produce_per_s", "raw_consume_per_s", "raw_transaction_loop_per_s"}
LATENESS = ("first_ms", "p50_ms", "p99_ms", "max_ms")


def bench(home: Path, *arguments: str) -> dict[str, Any]:
    """What one benchmark prints as JSON, run as a user runs it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")}
    ran = subprocess.run(
        [sys.executable, "-m", "mainspring.cli", "bench", *arguments, "-o", "json"],
        cwd=home,
        env=own,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    assert report["bench"] == arguments[0]
    assert report["machine"]["cores"] >= 1
    assert all(report[limit] > 0 for limit in LIMITS)
    assert all({"name", "value", "unit", "goal", "at_least", "met"} == set(goal) for goal in report["goals"])
    return report


def test_throughput_on_its_own_broker_tells_what_each_process_costs(tmp_path: Path) -> None:
    # Given no broker, when so few jobs are run through,
    report = bench(tmp_path, "throughput", "--jobs", "400", "--warm-up", "100", "--records", "500")

    # then the cost of each process is told, the broker's included, and they add up.
    cost = report["cpu_us_per_job"]
    assert set(cost) == {"scheduler", "worker", "client", "broker", "sum"}
    assert all(figure >= 0 for figure in cost.values())
    assert cost["sum"] == pytest.approx(sum(cost.values()) - cost["sum"], abs=0.5)
    assert report["jobs"] == 400
    assert report["jobs_per_s"] > 0
    assert report["broker_cpu_pct"] > 0
    assert report["layout"]["broker"] == "embedded"
    # A job is in the log once as a command, three times as an event, and in rows and offers.
    by_topic = report["log_bytes_per_job_by_topic"]
    assert {"commands", "events", "attempts", "scheduler-changelog", "work.default.medium"} <= set(by_topic)
    assert report["log_bytes_per_job"] == pytest.approx(sum(by_topic.values()), abs=1)
    # A goal that was missed at this size is no failure: the command reports, it does not judge.
    assert [goal["name"] for goal in report["goals"]] == ["CPU per job, all processes"]


def test_latency_tells_lateness_in_order(tmp_path: Path, kafka: str) -> None:
    report = bench(tmp_path, "latency", "--rate", "40", "--seconds", "0.5", "--records", "200", "--bootstrap", kafka)

    assert report["jobs"] == 20
    assert 0 < report["p50_ms"] <= report["p99_ms"] <= report["max_ms"]
    assert report["first_ms"] > 0
    assert min(report["layout"]["load_before"], report["layout"]["load_after"]) >= 0
    # The broker is somebody else's, so nobody knows its process.
    assert report["layout"]["broker"] == "given"
    assert report["broker_cpu_pct"] is None
    assert {"scheduler", "worker", "client"} == set(report["cpu_pct"])


def test_lateness_is_told_for_each_second_and_all_its_jobs_are_in_each_table(tmp_path: Path, kafka: str) -> None:
    # Given few jobs in each of three seconds, when they are run,
    report = bench(*(tmp_path, "lateness", "--rate", "20", "--seconds", "3", "--records", "200"), "--bootstrap", kafka)

    # then none has started early, and each is counted once by its second and once by its lateness.
    assert report["jobs"] == 60
    assert 0 <= report["p50_ms"] <= report["p99_ms"] <= report["max_ms"]
    by_second = report["by_second_of_minute"]
    assert [each["jobs"] for each in by_second] == [20, 20, 20]
    assert len({each["second"] for each in by_second}) == 3
    assert max(each["max_ms"] for each in by_second) == report["max_ms"]
    assert sum(each["jobs"] for each in report["histogram"]) == 60


def test_herd_starts_nothing_early_and_the_critical_job_too(tmp_path: Path, kafka: str) -> None:
    report = bench(tmp_path, "herd", "--jobs", "40", "--records", "200", "--bootstrap", kafka)

    assert report["jobs"] == 40
    late = [report[figure] for figure in LATENESS]
    assert late[0] >= 0, "a job has started before its time"
    assert late == sorted(late)
    assert report["accepted_before_due_s"] > 0, "the herd was due before all of it was accepted"
    assert report["critical_ms"] > 0
    assert report["critical_last_ms"] > 0
    assert report["starts_per_s"] > 0
    assert sum(report["starts_by_second"]) == 40
    assert report["jobs_per_s"] > 0
    assert report["scheduler_peak_mib"] is None or report["scheduler_peak_mib"] > 1


def test_schedules_of_one_second_are_fired_not_before_it_and_each_is_counted(tmp_path: Path, kafka: str) -> None:
    report = bench(tmp_path, "schedules", "--schedules", "40", "--records", "200", "--bootstrap", kafka)

    assert report["schedules"] == 40
    late = [report[figure] for figure in LATENESS]
    assert late[0] >= 0, "a schedule fired before its time"
    assert late == sorted(late)
    assert report["accepted_before_due_s"] > 0
    assert 0 < report["started_p50_ms"] <= report["started_max_ms"]
    assert report["created_per_s"] > 0


def test_restart_is_measured_with_store_after_a_kill_without_store_and_with_a_second_scheduler(
    tmp_path: Path, kafka: str
) -> None:
    report = bench(tmp_path, "restart", "--jobs", "60", "--records", "200", "--bootstrap", kafka)

    assert report["jobs"] == 60
    assert set(report["ready_s"]) == {"graceful", "killed", "changelog"}
    assert all(seconds > 0 for seconds in report["ready_s"].values())
    # The changelog has at least two rows of each job, and a bare consumer reads it faster than a scheduler restores it.
    assert report["changelog_records"] >= 120
    assert 0 < report["restored_share_pct"] < 100
    # The group notices a death before the second scheduler can decide for all.
    assert 0 < report["noticed_s"] < report["takeover_s"]
    assert 0 < report["standby"]["noticed_s"] < report["standby"]["takeover_s"]
    assert report["scheduler_peak_mib"] is None or report["scheduler_peak_mib"] > 1


def test_idle_tells_what_each_process_uses(tmp_path: Path, kafka: str) -> None:
    report = bench(tmp_path, "idle", "--seconds", "0.5", "--records", "200", "--memory", "--bootstrap", kafka)

    assert report["idle_cpu_pct"] >= 0
    assert report["cpu_pct"]["scheduler"] == report["idle_cpu_pct"]
    assert report["layout"]["tables"] == "memory"


def test_a_given_broker_is_left_as_it_was_found(kafka: str) -> None:
    # Given an installation on a broker that stays,
    admin = AdminClient({"bootstrap.servers": kafka})
    with open_site(Globals(flags={"kafka.bootstrap": kafka}), Plan(partitions=2, slots=4)) as site:
        prefix = site.prefix
        site.start()
        assert any(name.startswith(prefix) for name in admin.list_topics(timeout=10).topics)
        home = site.home

    # when it is over, then neither topics nor files are left.
    assert not [name for name in admin.list_topics(timeout=10).topics if name.startswith(prefix)]
    assert not home.exists()
