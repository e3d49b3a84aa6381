"""The list of skips that CI allows."""

from __future__ import annotations

import pytest

from tests.support.skips import read_allowed

pytest_plugins = ["pytester"]
SKIPPING = """
import pytest

def test_runs():
    pass

def test_skips():
    pytest.skip("no such machine")
"""
GUARDED = """
from tests.support.skips import SkipGuard

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipGuard({allowed!r}))
"""


def test_each_line_is_a_test_and_a_reason() -> None:
    # when
    allowed = read_allowed("# why\n\ntests/a.py::test_b: needs an engine\n")

    # then
    assert allowed == {"tests/a.py::test_b": "needs an engine"}


def test_a_line_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="a reason"):
        read_allowed("tests/a.py::test_b\n")


@pytest.mark.parametrize(
    ("allowed", "exit_code"),
    [({}, pytest.ExitCode.TESTS_FAILED), ({"test_it.py::test_skips": "no machine"}, pytest.ExitCode.OK)],
    ids=["not listed", "listed"],
)
def test_a_skip_fails_the_run_unless_it_is_listed(
    pytester: pytest.Pytester, allowed: dict[str, str], exit_code: pytest.ExitCode
) -> None:
    # given
    pytester.makeconftest(GUARDED.format(allowed=allowed))
    pytester.makepyfile(test_it=SKIPPING)

    # when
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio")

    # then
    assert result.ret == exit_code
    # pytest's own summary stays the last line.
    assert "1 passed, 1 skipped" in result.outlines[-1]
