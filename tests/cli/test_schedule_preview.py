"""`mainspring schedule preview`: times of a definition that exists nowhere yet, without a broker."""

import pytest

from tests.cli.command_line import Cli

_NIGHTLY = ("--cron", "30 2 * * *", "--tz", "Europe/Berlin")


def test_a_program_gets_the_next_times_in_utc_and_by_the_local_clock(cli: Cli) -> None:
    ran = cli("schedule", "preview", *_NIGHTLY, "--after", "2026-03-28T00:00:00Z", "-n", "3", "-o", "json")

    assert ran.code == 0
    assert [(row["utc"], row["local"], row["mark"]) for row in ran.json] == [
        ("2026-03-28T01:30:00Z", "2026-03-28T02:30:00+01:00", None),
        ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00", "gap"),
        ("2026-03-30T00:30:00Z", "2026-03-30T02:30:00+02:00", None),
    ]


def test_a_person_sees_the_rule_in_words_and_what_clock_changes_do(cli: Cli) -> None:
    gap = cli("schedule", "preview", *_NIGHTLY, "--after", "2026-03-28T00:00:00Z", "-n", "3")
    fold = cli("schedule", "preview", *_NIGHTLY, "--after", "2026-10-24T12:00:00Z", "-n", "2", "--fold", "both")

    assert gap.out.startswith("At 02:30, every day, Europe/Berlin\n")
    assert [line.split()[0] for line in gap.out.splitlines() if "end of a gap" in line] == ["2026-03-29T01:00:00Z"]
    assert [line.split()[0] for line in fold.out.splitlines() if "comes twice" in line] == [
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00Z",
    ]


def test_an_interval_counts_from_its_anchor(cli: Cli) -> None:
    anchored = ("--anchor", "2026-01-01T00:05:00Z", "--after", "2026-07-01T10:00:00+02:00")
    ran = cli("schedule", "preview", "--every", "15m", *anchored, "-n", "2", "-o", "json")

    assert [row["utc"] for row in ran.json] == ["2026-07-01T08:05:00Z", "2026-07-01T08:20:00Z"]


def test_the_zone_of_this_machine_does_not_matter(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def times() -> list[str]:
        ran = cli(
            *("schedule", "preview", "--cron", "30 1 * * *", "--after", "2022-10-29T23:50:00Z", "-n", "2", "-o", "json")
        )
        return [row["utc"] for row in ran.json]

    monkeypatch.setenv("TZ", "Europe/London")

    assert times() == ["2022-10-30T01:30:00Z", "2022-10-31T01:30:00Z"]


def test_what_exclusions_took_away_is_counted(cli: Cli) -> None:
    ran = cli(
        *("schedule", "preview", "--cron", "0 * * * *", "--exclude", "* 0-8 * * *", "-n", "2", "-o", "json"),
        *("--after", "2026-01-01T22:30:00Z"),
    )

    assert [(row["utc"], row["excluded"]) for row in ran.json] == [
        ("2026-01-01T23:00:00Z", 0),
        ("2026-01-02T09:00:00Z", 9),
    ]


def test_a_schedule_that_ends_shows_what_is_left_and_says_so(cli: Cli) -> None:
    ends = ("--after", "2026-01-01T00:00:00Z", "--end", "2026-01-02T02:30:00Z", "--tz", "UTC")
    ran = cli("schedule", "preview", "--cron", "30 2 * * *", *ends)

    assert [line.split()[0] for line in ran.out.splitlines()[3:]] == ["2026-01-01T02:30:00Z", "2026-01-02T02:30:00Z"]
    assert "never fires again" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cron", "0 0 30 2 *"), "--cron '0 0 30 2 *': never matches"),
        (("--cron", "0 17 * * MON_FRI"), "day of week: cannot read 'MON_FRI'"),
        (("--cron", "0 17 * * *", "--tz", "Europe/Berln"), "--tz: is no zone of the tz database"),
        (("--cron", "0 17 * * *", "--exclude", "61 * * * *"), "--exclude '61 * * * *': minute"),
        (("--cron", "0 17 * * *", "--exclude", "* 17 * * *"), "never fires: the exclusions leave nothing"),
        (("--every", "10ms"), "--every: must be from 100"),
        (("--every", "soon"), "--every: 'soon' is not a duration"),
        (("--every", "1m", "--after", "2026-01-01T00:00:00"), "is no instant"),
        ((), "Nothing says when it fires"),
    ],
)
def test_what_is_wrong_is_refused_with_the_option_it_came_from(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    ran = cli("schedule", "preview", *arguments)

    assert ran.code == 2
    assert said in " ".join(ran.err.replace("│", " ").split())
    assert ran.out == ""
