"""The topics of an installation by the commands, on a real broker."""

import json

import pytest

from mainspring.cli.errors import ExitCode
from tests.cli.command_line import Cli

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]


def test_plan_shows_what_apply_makes_and_a_second_apply_makes_nothing(cli: Cli, kafka: str, prefix: str) -> None:
    where = (
        "--bootstrap",
        kafka,
        "--prefix",
        prefix,
        "--set",
        "topics.partitions=2",
        "--set",
        "topics.work_partitions=1",
    )

    planned = cli("topics", "plan", "-o", "json", *where)
    checked = cli("topics", "plan", "--check", *where)
    applied = cli("topics", "apply", "-o", "json", *where)
    again = cli("topics", "plan", "--check", "-o", "json", *where)

    assert planned.code == applied.code == again.code == 0
    assert checked.code == ExitCode.FAILURE
    assert json.loads(planned.out) == json.loads(applied.out)
    assert {step["action"] for step in json.loads(planned.out)["steps"]} == {"create"}
    assert json.loads(again.out) == {"steps": [], "conflicts": []}


def test_another_partition_count_is_a_conflict_and_changes_nothing(cli: Cli, kafka: str, prefix: str) -> None:
    where = ("--bootstrap", kafka, "--prefix", prefix, "--set", "topics.work_partitions=1")
    cli("topics", "apply", *where, "--set", "topics.partitions=2")

    plan = cli("topics", "plan", *where, "--set", "topics.partitions=3", "-o", "json")
    apply = cli("topics", "apply", *where, "--set", "topics.partitions=3")

    assert plan.code == apply.code == ExitCode.REJECTED
    assert f"{prefix}events" in {each["topic"] for each in json.loads(plan.out)["conflicts"]}
    assert "Nothing was changed" in apply.err
    assert apply.out == ""
