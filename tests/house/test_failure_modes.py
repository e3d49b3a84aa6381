"""What the page of failure modes tells an operator to look at and to type is there."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from mainspring.cli.app import build
from mainspring.telemetry import metrics

PAGE = (Path(__file__).parents[2] / "docs" / "failure-modes.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| ")]
METRIC = re.compile(r"`([a-z]+(?:_[a-z]+)*)(?:\{([^}]*)\})?`")
COMMAND = re.compile(r"`mainspring ([^`]*)`")


def families() -> dict[str, set[str]]:
    """The labels of each metric, by its name without the prefix."""
    known = {}
    for collector in metrics.REGISTRY._collector_to_names:
        labels = set(getattr(collector, "_labelnames", ()))
        known.update({family.name.removeprefix("mainspring_"): labels for family in collector.collect()})
    return known


def test_every_metric_that_a_row_names_exists_with_its_labels() -> None:
    known = families()
    named = [match for row in ROWS for match in METRIC.finditer(row[1])]
    assert len(named) > 10
    for match in named:
        name, labels = match.group(1), match.group(2)
        assert name in known, f"{name} is no metric"
        asked = {label.partition("=")[0] for label in labels.split(",")} if labels else set()
        assert asked <= known[name], f"{name} has no such labels: {asked - known[name]}"


@pytest.mark.parametrize("line", sorted(set(COMMAND.findall(PAGE))))
def test_every_command_on_the_page_exists_with_its_options(line: str) -> None:
    command: Any = typer.main.get_command(build())
    words = line.split()
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        assert name in command.commands, f"there is no `mainspring {line}`"
        command = command.commands[name]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options
