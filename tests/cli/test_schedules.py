"""Schedules by the commands, on a real broker, with a scheduler, a worker and a projector that commands run."""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.cli.errors import ExitCode
from tests.cli.installation import Installation
from tests.support.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]
HOURLY = ("--every", "1h")
SCHEDULE_KEYS = {
    *("schedule_id", "status", "version", "revision", "when", "next_run", "created_at", "updated_at", "runs", "fired"),
    *("skipped", "failed", "running", "last_run", "last_job_id", "last_outcome", "pause_code", "paused_by"),
    "pause_note",
}


def created(installed: Installation, *arguments: str) -> str:
    """The id of a schedule that was accepted."""
    schedule_id = f"s-{secrets.token_hex(5)}"
    done = installed("schedule", "create", schedule_id, *arguments)
    assert done.code == 0, done.err
    assert done.out.strip() == schedule_id
    return schedule_id


def told(installed: Installation, *arguments: str) -> Any:
    """What a command prints as JSON."""
    done = installed("schedule", *arguments, "-o", "json")
    assert done.code == 0, done.err
    return done.json


def fired(installed: Installation, schedule_id: str) -> list[Any]:
    history = told(installed, "history", schedule_id, "-n", "1000")
    return [each for each in history if each["type"] == "OccurrenceFired"]


def jobs_of(installed: Installation, schedule_id: str) -> list[str]:
    listed = installed("job", "list", "--schedule", schedule_id, "-o", "json")
    return [job["job_id"] for job in listed.json["jobs"]]


def test_a_schedule_fires_is_paused_resumed_and_deleted(installed: Installation) -> None:
    # given
    schedule_id = created(
        installed, "hello", "--every", "200ms", "--payload", '{"name": "Ann"}', "--note", "greets", "--queue", "default"
    )

    # when
    eventually(lambda: [each for each in fired(installed, schedule_id) if each["ended"]])
    paused = installed("schedule", "pause", schedule_id, "--note", "enough", "--reason", "a test")
    twice = installed("schedule", "pause", schedule_id)
    eventually(lambda: told(installed, "get", schedule_id)["status"] == "PAUSED")
    while_paused = told(installed, "get", schedule_id)
    resumed = told(installed, "resume", schedule_id)
    number = len(fired(installed, schedule_id))
    eventually(lambda: len(fired(installed, schedule_id)) > number)
    deleted = told(installed, "delete", schedule_id, "--reason", "done with")

    # then
    assert (paused.code, twice.code) == (0, ExitCode.REJECTED)
    assert "ALREADY_PAUSED" in twice.err
    assert while_paused.keys() == SCHEDULE_KEYS | {"definition", "backfills"}
    assert (while_paused["pause_note"], while_paused["next_run"]) == ("enough", None)
    assert while_paused["definition"]["job"]["payload"] == {"name": "Ann"}
    assert resumed["revision"] < deleted["revision"]
    first = fired(installed, schedule_id)[0]
    assert first["ended"]["outcome"] == "COMPLETED"
    assert first["job_id"].startswith(f"{schedule_id}@")
    history = told(installed, "history", schedule_id, "-n", "1000")
    assert (history[0]["type"], history[-1]["type"]) == ("ScheduleCreated", "ScheduleDeleted")
    assert {"outcome", "first", "last", "count"} <= next(e for e in history if e["type"] == "OccurrencesSkipped").keys()
    table = installed("schedule", "history", schedule_id)
    assert "fired" in table.out
    assert "ScheduleDeleted" in table.out


def test_an_update_can_be_seen_before_it_is_made(installed: Installation) -> None:
    # given
    schedule_id = created(
        installed, "hello", "--cron", "30 2 * * MON-FRI", "--tz", "Europe/Berlin", "--end", "2099-01-01T00:00:00Z"
    )
    change = ("--cron", "0 4 * * *", "--overlap", "allow-all", "--payload", '{"name": "Bo"}', "--clear", "end")

    # when
    dry = told(installed, "update", schedule_id, "--dry-run", *change)
    shown = installed("schedule", "update", schedule_id, "--dry-run", *change)
    before = told(installed, "get", schedule_id)
    made = told(installed, "update", schedule_id, *change)
    conflict = installed("schedule", "update", schedule_id, "--note", "late", "--expect-version", "1")
    idle = installed("schedule", "update", schedule_id, *change)

    # then
    assert {each["field"]: each["after"] for each in dry["changes"]} == {
        "timing.rules": [{"expression": "0 4 * * *", "seconds": False}],
        "timing.end_ms": None,
        "job.payload": {"name": "Bo"},
        "overlap": "ALLOW_ALL",
    }
    assert all(at[11:16] in ("00:30", "01:30") for at in dry["next_before"])
    assert all(at[11:16] in ("02:00", "03:00") for at in dry["next_after"])
    assert "timing.rules" in shown.out
    assert (before["version"], before["when"]) == (
        1,
        "At 02:30, Monday to Friday, Europe/Berlin, until 2099-01-01 00:00:00Z",
    )
    assert made["version"] == 2
    eventually(lambda: told(installed, "get", schedule_id)["version"] == 2)
    after = told(installed, "get", schedule_id)
    assert after["definition"]["timing"]["timezone"] == "Europe/Berlin"
    assert after["definition"]["timing"]["end_at"] is None
    assert conflict.code == ExitCode.REJECTED
    assert "VERSION_CONFLICT" in conflict.err
    assert "change nothing" in idle.err
    installed("schedule", "delete", schedule_id)


def test_an_instance_by_hand_prints_its_result(installed: Installation) -> None:
    # given
    schedule_id = created(installed, "hello", *HOURLY, "--payload", '{"name": "Cy"}')

    # when
    done = installed("schedule", "trigger", schedule_id, "--wait")

    # then
    assert (done.code, done.out) == (0, "Hello, Cy!\n")
    (instance,) = fired(installed, schedule_id)
    assert instance["origin"] == "TRIGGER"
    eventually(lambda: jobs_of(installed, schedule_id) == [instance["job_id"]])
    installed("schedule", "delete", schedule_id)


def test_a_backfill_fires_what_was_not_fired_and_nothing_twice(installed: Installation) -> None:
    # given
    schedule_id = created(
        installed, "hello", "--every", "1m", "--anchor", "2026-01-01T00:00:00Z", "--overlap", "allow-all"
    )
    span = ("--from", "2026-01-01T00:00:00Z", "--until", "2026-01-01T00:05:00Z")

    # when
    first = told(installed, "backfill", schedule_id, *span)
    eventually(lambda: len([each for each in fired(installed, schedule_id) if each["ended"]]) >= 6)
    again = told(installed, "backfill", schedule_id, *span)
    eventually(
        lambda: sum(e["type"] == "BackfillEnded" for e in told(installed, "history", schedule_id, "-n", "1000")) == 2
    )

    # then
    assert (first["count"], again["count"]) == (6, 6)
    backfilled = [each["job_id"] for each in fired(installed, schedule_id) if each["origin"] == "BACKFILL"]
    assert len(backfilled) == len(set(backfilled)) == 6
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    future = installed("schedule", "backfill", schedule_id, "--from", tomorrow, "--until", tomorrow)
    assert future.code == ExitCode.REJECTED
    installed("schedule", "delete", schedule_id)


def test_a_list_shows_what_there_is(installed: Installation) -> None:
    # given
    one, two = created(installed, "hello", *HOURLY, "--tenant", "acme"), created(installed, "sleep", "--cron", "@daily")
    installed("schedule", "pause", two)
    eventually(lambda: told(installed, "get", two)["status"] == "PAUSED")

    # when
    listed = {each["schedule_id"]: each for each in told(installed, "list", "--limit", "500")["schedules"]}
    of_acme = told(installed, "list", "--tenant", "acme")["schedules"]
    paused = told(installed, "list", "--status", "paused", "--job", "sleep")["schedules"]
    table = installed("schedule", "list")

    # then
    assert listed.keys() >= {one, two}
    assert listed[one].keys() == SCHEDULE_KEYS | {"job", "queue", "tenant", "note", "timing"}
    assert [each["schedule_id"] for each in of_acme] == [one]
    assert [each["schedule_id"] for each in paused] == [two]
    assert one in table.out
    for schedule_id in (one, two):
        installed("schedule", "delete", schedule_id)


def test_the_schedules_of_a_file_are_made_once_and_then_only_what_differs_is_written(
    installed: Installation, tmp_path: Path
) -> None:
    # given
    ids = [f"s-{secrets.token_hex(5)}" for _ in range(2)]
    file = tmp_path / "schedules.toml"
    tables = [
        f'[[schedules]]\nid = "{each}"\njob = "hello"\npayload = {{name = "Ada"}}\nevery = "1h"\n' for each in ids
    ]
    file.write_text("\n".join(tables), encoding="utf-8")

    def outcomes(*more: str) -> list[tuple[str, int, list[str]]]:
        done = told(installed, "apply", str(file), *more)
        assert [each["schedule_id"] for each in done] == ids
        return [(each["outcome"], each["version"], [change["field"] for change in each["changes"]]) for each in done]

    # when
    dry, first, second = outcomes("--dry-run"), outcomes(), outcomes()
    file.write_text("\n".join([tables[0], f'{tables[1]}note = "new"']), encoding="utf-8")
    would, third = outcomes("--dry-run"), outcomes()

    # then
    assert dry == first == [("created", 1, [])] * 2
    assert second == [("unchanged", 1, [])] * 2
    assert would == third == [("unchanged", 1, []), ("updated", 2, ["note"])]
    assert [len(told(installed, "history", each, "-n", "100")) for each in ids] == [1, 2]

    # when one of them cannot be meant
    file.write_text("\n".join([f'{tables[0]}note = "not written"', f"{tables[1]}max_runs = 0"]), encoding="utf-8")
    refused = installed("schedule", "apply", str(file))

    # then none is written
    assert refused.code == ExitCode.USAGE
    assert ids[1] in refused.err
    assert told(installed, "get", ids[0])["version"] == 1


@pytest.mark.parametrize(
    "words", [("get",), ("pause",), ("resume",), ("trigger",), ("delete",), ("history",), ("update", "--note", "x")]
)
def test_a_schedule_that_is_not_there_has_an_exit_code_of_its_own(
    installed: Installation, words: tuple[str, ...]
) -> None:
    done = installed("schedule", words[0], f"none-{secrets.token_hex(4)}", *words[1:])

    assert (done.code, done.out) == (ExitCode.NOT_FOUND, "")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("create", "s", "hello"), "--cron"),
        (("create", "s", "hello", "--every", "1ms"), "--every"),
        (("create", "a@b", "hello", "--every", "1h"), "schedule_id"),
        (("create", "s", "hello", "--every", "1h", "--payload", "[1]"), "--payload"),
        (("create", "s", "hello", "--every", "1h", "--overlap", "sometimes"), "--overlap"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error_that_names_it(
    installed: Installation, words: tuple[str, ...], named: str
) -> None:
    done = installed("schedule", *words)

    assert done.code == ExitCode.USAGE
    assert named in done.err
