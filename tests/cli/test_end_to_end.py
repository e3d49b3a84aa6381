"""Every command on a real broker, with a scheduler, a worker and a projector that the commands themselves run."""

import json
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mainspring.cli.errors import ExitCode
from tests.cli.command_line import Cli, Ran
from tests.cli.installation import Installation, Site
from tests.cli.job_keys import DETAIL_KEYS, JOB_KEYS
from tests.support.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]


def test_submit_and_wait_prints_the_result_alone_on_stdout(installed: Installation) -> None:
    done = installed("job", "submit", "hello", "--payload", '{"name": "Ann"}', "--wait")

    assert (done.code, done.out) == (0, "Hello, Ann!\n")
    assert "COMPLETED" in done.err


def test_a_payload_may_come_from_stdin_or_from_a_file(installed: Installation) -> None:
    Path("payload.json").write_text('{"name": "file"}', encoding="utf-8")

    by_stdin = installed("job", "submit", "hello", "--payload", "-", "--wait", "-o", "json", stdin='{"name": "stdin"}')
    by_file = installed("job", "submit", "hello", "--payload", "@payload.json", "--wait", "-o", "json")

    assert by_stdin.json["result"] == "Hello, stdin!"
    assert by_file.json == {"job_id": by_file.json["job_id"], "status": "COMPLETED", "result": "Hello, file!"}


def test_submit_prints_the_verdict_or_only_the_id(installed: Installation) -> None:
    verdict = installed("job", "submit", "hello", "--delay", "1h", "-o", "json")
    bare = installed("job", "submit", "hello", "--delay", "1h", "--no-verdict", "-o", "json")

    assert set(verdict.json) == {"job_id", "due_at", "seq"}
    assert set(bare.json) == {"job_id"}


def test_a_job_with_a_spread_is_due_in_its_window_as_its_id_says(installed: Installation) -> None:
    # Given two jobs for one instant, with the same window,
    at = ("--at", "2090-01-01T00:00:00Z", "--spread", "10m", "-o", "json")

    # when they are submitted,
    due = [installed("job", "submit", "hello", "--id", f"spread-{each}", *at).json["due_at"] for each in ("a", "b")]

    # then each is due in the window, where the hash of its id puts it.
    assert due == ["2090-01-01T00:08:39.762Z", "2090-01-01T00:08:35.535Z"]


def test_a_spread_without_a_time_is_a_usage_error(installed: Installation) -> None:
    done = installed("job", "submit", "hello", "--spread", "10m")

    assert done.code == ExitCode.USAGE
    assert "--at or --delay" in done.err


def test_a_job_that_fails_is_exit_code_1_and_says_why(installed: Installation) -> None:
    done = installed("job", "submit", "broken", "--wait")

    assert (done.code, done.out) == (ExitCode.FAILURE, "")
    assert "this job can never succeed" in done.err
    assert "Traceback" not in done.err


def test_a_wait_that_ends_first_is_exit_code_5_and_the_job_goes_on(installed: Installation) -> None:
    done = installed(
        "job", "submit", "sleep", "--payload", '{"seconds": 0}', "--delay", "1h", "--wait", "--wait-timeout", "1s"
    )

    assert done.code == ExitCode.TIMEOUT
    assert "It goes on" in done.err


def test_what_the_scheduler_refuses_is_exit_code_4(installed: Installation) -> None:
    job_id = installed.submitted("hello", "--delay", "1h")

    twice = installed("job", "submit", "hello", "--id", job_id)
    queue = installed("job", "submit", "hello", "--queue", "absent")

    assert (twice.code, queue.code) == (ExitCode.REJECTED, ExitCode.REJECTED)
    assert "DUPLICATE_JOB" in twice.err
    assert "UNKNOWN_QUEUE" in queue.err


def test_what_the_client_refuses_is_a_usage_error(installed: Installation) -> None:
    assert installed("job", "submit", "hello", "--id", "a@b").code == ExitCode.USAGE


def test_get_shows_a_job_with_its_attempts_and_its_history(installed: Installation) -> None:
    job_id = installed.ended(
        "flaky", "--payload", '{"chance": 1.0}', "--retries", "1", "--retry-delay", "10ms", "--tag", "t"
    )

    job = installed("job", "get", job_id, "-o", "json").json
    page = installed("job", "get", job_id)

    assert set(job) == DETAIL_KEYS
    assert (job["status"], job["attempt"], job["tags"], job["payload"]) == ("FAILED", 2, ["t"], {"chance": 1.0})
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["FAILED", "FAILED"]
    assert [event["type"] for event in job["events"]] == [
        "JobSubmitted",
        "JobStarted",
        "JobRetryScheduled",
        "JobStarted",
        "JobFailed",
    ]
    assert [event["revision"] for event in job["events"]] == [1, 2, 3, 4, 5]
    assert {event["cause"]["source"] for event in job["events"]} == {"COMMANDS", "ATTEMPTS"}
    for words in ("ConnectionError: the other side hung up", "JobRetryScheduled", "commands"):
        assert words in page.out


def test_a_job_that_is_not_there_is_exit_code_3(installed: Installation) -> None:
    for words in (("get",), ("explain",), ("logs",), ("watch", "--timeout", "1s"), ("cancel",)):
        done = installed("job", words[0], "absent", *words[1:])
        assert done.code == ExitCode.NOT_FOUND, (words, done.err)
        assert done.out == ""


def test_list_filters_orders_and_pages(installed: Installation) -> None:
    tag = secrets.token_hex(4)
    ids = [installed.ended("hello", "--tag", tag, "--priority", "high") for _ in range(3)]

    def listed(*words: str) -> Ran:
        return installed("job", "list", "--tag", tag, *words)

    # The view follows the log; the end of a job may be in the one before it is in the other.
    eventually(lambda: len(listed("--status", "completed", "-o", "json").json["jobs"]) == len(ids))
    first = listed("--limit", "2", "--order", "oldest", "-o", "json").json
    rest = listed("--limit", "2", "--order", "oldest", "--cursor", first["next_cursor"], "-o", "json").json
    none = listed("--status", "failed", "-o", "json").json
    table = listed("--status", "completed", "--priority", "HIGH", "--since", "1h")

    assert [job["job_id"] for job in first["jobs"] + rest["jobs"]] == ids
    assert rest["next_cursor"] is None
    assert all(set(job) == JOB_KEYS for job in first["jobs"])
    assert none["jobs"] == []
    assert all(job_id in table.out for job_id in ids)
    assert "jobs in all" in table.err


def test_a_waiting_job_is_rescheduled_cancelled_and_run_again(installed: Installation) -> None:
    job_id = installed.submitted("hello", "--delay", "1h")

    moved = installed("job", "reschedule", job_id, "--at", "2999-01-01T00:00:00Z", "-o", "json")
    cancelled = installed("job", "cancel", job_id, "--reason", "not needed", "-o", "json")
    twice = installed("job", "cancel", job_id, "-o", "json")
    again = installed("job", "retry", job_id, "--wait")

    assert moved.json == {"job_id": job_id, "due_at": "2999-01-01T00:00:00.000Z"}
    assert (cancelled.code, cancelled.json["took_effect"], cancelled.json["status"]) == (0, True, "CANCELLED")
    assert (twice.code, twice.json["took_effect"], twice.json["code"]) == (ExitCode.REJECTED, False, "ALREADY_TERMINAL")
    assert (again.code, again.out) == (0, "Hello, world!\n")


def test_a_running_job_is_told_to_stop(installed: Installation) -> None:
    job_id = installed.submitted("sleep", "--payload", '{"seconds": 120}')
    eventually(lambda: installed.why(job_id) == "Running")

    cancelled = installed("job", "cancel", job_id)

    assert cancelled.code == 0, cancelled.err
    watched = installed("job", "watch", job_id)
    assert watched.code == ExitCode.FAILURE
    assert "JobCancelled" in watched.out


def test_watch_prints_each_event_of_a_life_as_a_line(installed: Installation) -> None:
    job_id = installed.submitted("hello")

    lines = installed("job", "watch", job_id, "-o", "json").out.splitlines()
    table = installed("job", "watch", job_id)
    waiting = installed("job", "watch", installed.submitted("hello", "--delay", "1h"), "--timeout", "1s")

    events = [json.loads(line) for line in lines]
    assert [event["type"] for event in events] == ["JobSubmitted", "JobStarted", "JobCompleted"]
    assert {event["job_id"] for event in events} == {job_id}
    assert (table.code, len(table.out.splitlines())) == (0, 3)
    assert waiting.code == ExitCode.TIMEOUT


def test_explain_gives_the_typed_reason_and_the_event_that_made_it_so(installed: Installation) -> None:
    scheduled = installed.submitted("hello", "--delay", "1h")
    done = installed.ended("hello")
    unknown = installed.submitted("no.such.handler")

    later = installed("job", "explain", scheduled, "-o", "json").json
    assert (later["status"], later["why"]["type"]) == ("PENDING", "ScheduledUntil")
    assert later["last_event"]["type"] == "JobSubmitted"
    assert later["last_event"]["cause"]["source"] == "COMMANDS"
    assert later["last_event"]["offset"] >= 0
    assert installed.why(done) == "Finished"
    eventually(lambda: installed.why(unknown) == "Parked")
    # Between two pauses it is on offer again; the page of one look has all of it.
    pages: list[str] = []

    def parked() -> bool:
        pages.append(installed("job", "explain", unknown).out)
        return "No worker that was asked has known its name" in pages[-1]

    eventually(parked)
    words = " ".join(pages[-1].split())
    assert "name no.such.handler" in words
    assert "if no worker knows the name by then" in words
    assert "decided by commands, partition" in words


def test_logs_are_what_the_attempt_wrote(installed: Installation) -> None:
    job_id = installed.ended("hello", "--payload", '{"name": "Bob"}')

    shown = installed("job", "logs", job_id)
    as_json = installed("job", "logs", job_id, "-o", "json").json

    assert shown.code == 0
    assert "greeting Bob" in shown.out
    assert [attempt["attempt"] for attempt in as_json["attempts"]] == [1]
    assert installed("job", "logs", job_id, "--attempt", "2").code == ExitCode.NOT_FOUND


def test_the_log_is_tailed_and_a_jobs_life_is_told_from_all_topics(installed: Installation) -> None:
    job_id = installed.ended("hello")

    tailed = [json.loads(line) for line in installed("log", "tail", "--job", job_id, "-o", "json").out.splitlines()]
    told = installed("log", "history", job_id, "-o", "json").json
    lines = installed("log", "history", job_id)

    assert [record["type"] for record in tailed] == ["JobSubmitted", "JobStarted", "JobCompleted"]
    assert [record["type"] for record in told][:2] == ["SubmitJob", "JobSubmitted"]
    assert {"AttemptClaimed", "AttemptSucceeded", "JobCompleted"} <= {record["type"] for record in told}
    assert len(lines.out.splitlines()) == len(told)
    assert installed("log", "history", "never-named").code == ExitCode.NOT_FOUND
    assert installed("log", "tail", "--topic", "absent").code == ExitCode.USAGE


def test_the_state_at_a_time_is_the_fold_up_to_it(installed: Installation) -> None:
    job_id = installed.ended("hello")
    events = installed("job", "get", job_id, "-o", "json").json["events"]

    at_submit = installed("log", "state", "--job", job_id, "--at", events[0]["decided_at"], "-o", "json").json
    now = installed("log", "state", "--job", job_id, "-o", "json").json
    before = installed("log", "state", "--job", job_id, "--at", "2020-01-01T00:00:00Z")
    counts = installed("log", "state", "-o", "json").json

    assert (at_submit["status"], at_submit["revision"]) == ("PENDING", 1)
    assert (now["status"], now["revision"]) == ("COMPLETED", 3)
    assert before.code == ExitCode.NOT_FOUND
    assert counts["jobs"] == sum(counts["by_status"].values()) > 0


def test_the_audit_is_clean_live_and_from_an_export(installed: Installation) -> None:
    installed.ended("hello")

    live = installed("log", "verify", "-o", "json")
    exported = installed("log", "export", "log.avro", "-o", "json")
    read_back = installed("log", "verify", "--file", "log.avro", "-o", "json")
    table = installed("log", "verify")

    assert live.code == 0, live.out
    assert live.json["view_rows"] == live.json["jobs"] > 0
    assert exported.json["records"] > 0
    assert (read_back.code, read_back.json["ok"]) == (0, True)
    assert "agree" in table.out
    assert installed("log", "export", "log.xml").code == ExitCode.USAGE


def test_doctor_finds_everything_in_place(installed: Installation) -> None:
    done = installed("doctor", "-o", "json")

    found = {finding["check"]: finding for finding in done.json}
    assert done.code == 0, done.out
    for check in ("broker", "version", "topics", "schedulers", "workers", "view"):
        assert found[check]["level"] == "ok", found[check]
    assert found["clock"]["level"] in {"ok", "warn"}
    assert "read-only" in installed("doctor", "--read-only").out


def test_doctor_says_which_topics_are_missing(installed: Installation) -> None:
    done = installed("doctor", "--read-only", "--prefix", "nowhere.", "-o", "json")

    assert done.code == ExitCode.FAILURE
    topics = next(finding for finding in done.json if finding["check"] == "topics")
    assert (topics["level"], topics["hint"]) == ("fail", "mainspring topics apply")


def test_every_process_serves_metrics_and_health_on_loopback(installed: Installation, site: Site) -> None:
    installed.ended("hello")

    for role, running in site.services.items():
        for path in ("/livez", "/readyz", "/startupz"):
            status, body = running.get(path)
            assert status == 200, (role, path, body)
            assert json.loads(body)["checks"], (role, path)
        status, text = running.get("/metrics")
        assert status == 200
        assert "mainspring_build_info" in text
    _, text = site.services["scheduler"].get("/metrics")
    assert 'mainspring_partition_owner{partition="0",role="scheduler"} 1.0' in text
    assert "mainspring_txn_duration_seconds_count" in text


def test_the_view_of_another_installation_is_refused_and_without_a_broker_its_age_is_told(
    installed: Installation, site: Site, tmp_path: Path
) -> None:
    # given a view with a job in it, and a copy of it that was folded from a topic that is gone
    submitted = installed("job", "submit", "hello", "--wait", "--id", "of-this-cluster")
    assert submitted.code == 0, submitted.err
    assert installed("job", "get", "of-this-cluster").code == 0
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(site.config.parent / "view.db")) as there, closing(sqlite3.connect(copy)) as here:
        there.backup(here)
        here.execute("UPDATE meta SET value = 'AAAA' WHERE name = 'topic_id'")
        here.commit()

    # when it is read with the settings of another installation, with a cluster that is not its own, without any
    other_prefix = installed("--prefix", "elsewhere.", "job", "list")
    other_cluster = installed("--set", f"view.url=sqlite:///{copy}", "job", "list")
    no_broker = installed("--bootstrap", "127.0.0.1:1", "job", "list")

    # then what would be the jobs of others is not shown, and what may be old says how old
    for refused in (other_prefix, other_cluster):
        assert (refused.code, refused.out) == (1, ""), refused.err
        assert "is not of the Kafka at" in refused.err
    assert "elsewhere.events" in other_prefix.err
    assert "AAAA" in other_cluster.err
    assert no_broker.code == 0
    assert "of-this-cluster" in no_broker.out
    assert "no broker answers at 127.0.0.1:1: what the view shows is of" in no_broker.err


def test_where_there_is_no_view_its_whole_path_is_named(cli: Cli, tmp_path: Path) -> None:
    ran = cli("job", "list")

    assert ran.code == 1
    assert f"There is no view at {tmp_path}/mainspring-view.db. view.url is sqlite:///mainspring-view.db" in ran.err
    assert "relative to this directory" in ran.err


def test_commands_for_a_job_that_is_not_there_end_with_3(installed: Installation) -> None:
    for command in (("cancel",), ("retry",), ("reschedule", "--delay", "1h"), ("get",), ("explain",), ("watch",)):
        ran = installed("job", command[0], "never-submitted", *command[1:])
        assert ran.code == ExitCode.NOT_FOUND, (command, ran.err)
        assert "'never-submitted'" in ran.err


def test_a_submit_with_an_app_applies_what_the_job_declares_and_checks_the_payload(installed: Installation) -> None:
    sample = ("--app", "mainspring.cli.sample:app")
    declared = installed("job", "submit", "flaky", *sample, "--delay", "1h", "--id", "declared", "-o", "json")
    bare = installed("job", "submit", "flaky", "--delay", "1h", "--id", "bare", "-o", "json")
    given = installed("job", "submit", "flaky", *sample, "--delay", "1h", "--retries", "1", "--id", "given")
    wrong = installed("job", "submit", "hello", *sample, "--payload", '{"nme": "you"}')
    unknown = installed("job", "submit", "helo", *sample)

    assert (declared.code, bare.code, given.code) == (0, 0, 0)
    assert "no --app" not in declared.err
    assert "no --app" in bare.err
    retries = {name: installed("job", "get", name, "-o", "json").json["max_retries"] for name in ("declared", "bare")}
    assert retries == {"declared": 5, "bare": 0}
    assert installed("job", "get", "given", "-o", "json").json["max_retries"] == 1
    assert wrong.code == ExitCode.USAGE
    assert "nme" in wrong.err
    assert unknown.code == ExitCode.USAGE
    assert "It has: broken, flaky, hello, primes, sleep" in unknown.err


def test_a_job_is_found_by_the_beginning_of_its_id_where_only_one_begins_so(installed: Installation) -> None:
    for job_id in ("begins-so-1", "begins-so-1-2", "begins-so-3"):
        assert installed("job", "submit", "hello", "--delay", "1h", "--id", job_id).code == 0
        assert installed("job", "get", job_id).code == 0

    # an id that is whole means itself, even where others go on from it
    assert installed("job", "get", "begins-so-1", "-o", "json").json["job_id"] == "begins-so-1"
    assert installed("job", "explain", "begins-so-1", "-o", "json").json["job_id"] == "begins-so-1"
    # one beginning, one job
    cancelled = installed("job", "cancel", "begins-so-1-", "-o", "json")
    assert (cancelled.code, cancelled.json["job_id"]) == (0, "begins-so-1-2")
    assert "is begins-so-1-2" in cancelled.err
    assert installed("job", "watch", "begins-so-1-").code == 1
    # several jobs
    ambiguous = installed("job", "cancel", "begins-so")
    assert ambiguous.code == ExitCode.USAGE
    assert "begins-so-1, begins-so-1-2, begins-so-3" in ambiguous.err
