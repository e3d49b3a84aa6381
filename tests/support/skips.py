"""In CI a skipped test fails the run, unless `tests/allowed_skips.txt` names it with a reason.

A suite that skips what it cannot run stays green while it proves less and less.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ALLOWED = Path(__file__).parents[1] / "allowed_skips.txt"


def read_allowed(text: str) -> dict[str, str]:
    """The reason of each allowed skip, by the start of the test's id; raises ValueError for a line without one."""
    allowed = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        test, separator, reason = line.partition(": ")
        if not separator or not reason.strip():
            raise ValueError(f"allowed_skips.txt: a test, a colon, a space and a reason are expected, not {line!r}")
        allowed[test.strip()] = reason.strip()
    return allowed


class SkipGuard:
    """A pytest plugin: collects what was skipped and turns the run red for what nobody allowed."""

    def __init__(self, allowed: dict[str, str]) -> None:
        self._allowed = tuple(allowed)
        self._refused: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # An expected failure reports itself as skipped, too.
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report.nodeid, report.longrepr)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report.nodeid, report.longrepr)

    def _note(self, test: str, why: object) -> None:
        if not test.startswith(self._allowed):
            self._refused[test] = str(why[2]) if isinstance(why, tuple) else str(why)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._refused:
            terminalreporter.section("skipped, and not allowed to be (tests/allowed_skips.txt)", red=True)
            for test, why in self._refused.items():
                terminalreporter.line(f"{test}: {why}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def install(config: pytest.Config) -> None:
    """Guard this run, where it is CI's and this process is the one that reports."""
    if os.environ.get("CI") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipGuard(read_allowed(_ALLOWED.read_text(encoding="utf-8"))), "skip-guard")
