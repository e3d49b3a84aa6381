"""Every test that a page names is there: a promise without its test is none."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEFINED = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}
FILES = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}


@pytest.mark.parametrize("page", ["guarantees.md", "features.md", "testing.md"])
def test_every_test_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", text))

    assert named | files, "a page of promises names its tests"
    assert named - DEFINED == set()
    assert files - FILES == set()
