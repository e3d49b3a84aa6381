"""What a proof has measured, printed with the summary of the run, from whichever process it ran in."""

from collections.abc import Callable

import pytest

Report = Callable[[str], None]
PROPERTY = "proof"


class ProofReporter:
    """A pytest plugin: gathers what proofs report, and prints it at the end."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            name = report.nodeid.rpartition("::")[2]
            self._lines += [(name, str(text)) for key, text in report.user_properties if key == PROPERTY]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            terminalreporter.section("proofs")
        for name, text in self._lines:
            terminalreporter.line(f"{name}: {text}")


def install(config: pytest.Config) -> None:
    """Prints in the process that the user sees."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ProofReporter())
