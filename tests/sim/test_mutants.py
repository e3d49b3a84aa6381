"""Is the oracle alive? Each seeded fault of the product breaks the invariant that stands for it."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.sim.mutant import Mutant
from tests.sim.mutants import MUTANTS
from tests.sim.run import run_plan

ROOT = Path(__file__).parents[2]
PRODUCT = [ROOT / path for path in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
    "targets"
]["wheel"]["packages"]]  # fmt: skip
SOURCES = sorted(path for root in PRODUCT for path in root.rglob("*.py"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_seeded_fault_breaks_the_invariant_that_stands_for_it(mutant: Mutant) -> None:
    # when seeds are run with the fault until one shows it
    other: dict[str, int] = {}
    for seed in range(1, mutant.tries + 1):
        with pytest.MonkeyPatch.context() as patch:
            mutant.apply(patch.setattr)
            outcome = run_plan(mutant.plan(seed))
        if outcome.broken == mutant.caught_by:
            break
        if outcome.broken:
            other[outcome.broken] = seed
    else:
        pytest.fail(f"no seed up to {mutant.tries} breaks {mutant.caught_by!r}; others: {other}")

    # then the very same run without the fault breaks nothing
    control = run_plan(mutant.plan(seed))
    assert control.ok, control.report()


def test_there_are_at_least_fifteen_seeded_faults_and_no_two_the_same() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 15
    assert len({mutant.apply for mutant in MUTANTS}) == len(MUTANTS)


def test_the_table_of_seeded_faults_in_the_docs_is_this_one() -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    section = page.partition("\n## Seeded faults\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| `(.+?)` \|$", section, re.MULTILINE)

    assert rows == [(mutant.name, mutant.caught_by) for mutant in MUTANTS]


def test_what_is_shipped_knows_nothing_of_the_tests() -> None:
    # given all that goes into the wheel
    assert len(SOURCES) > 100
    trees = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in SOURCES]

    # when
    imported = {
        (path, name)
        for path, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if name.partition(".")[0] in {"tests", "greenlet", "pytest", "hypothesis"} and "testing" not in path.parts
    }

    # then
    assert imported == set()


def test_what_is_shipped_has_no_switch_for_a_fault() -> None:
    # given the names by which a program is told, from outside or from a test, to behave otherwise
    switch = re.compile(r"mutant|mutation|fault_?inject|inject_?fault|failpoint|buggify|chaos|sabotage", re.IGNORECASE)

    # when
    found = [str(path) for path in SOURCES if switch.search(path.read_text(encoding="utf-8"))]

    # then
    assert found == []
