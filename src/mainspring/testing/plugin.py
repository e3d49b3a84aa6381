"""The pytest plugin: the fixture `mainspring`, and what happened to the jobs in the report of a failed test.

pytest finds it by its entry point. It imports nothing of Mainspring until a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mainspring.testing.kit import Mainspring, Source

__all__ = ["mainspring", "mainspring_app"]

_INI = "mainspring_app"
_MARKER = "mainspring"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The setting that names the application under test."""
    parser.addini(_INI, "Apps whose handlers the fixture `mainspring` runs, each as module:app", type="args")


def pytest_configure(config: pytest.Config) -> None:
    """The marker that sets up the fixture."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(*apps, slots=10, workers=1, queues=…, seed=0, start=…, lease=…): how the fixture `mainspring` is "
        "made; the arguments are those of `mainspring.testing.Mainspring`",
    )


@pytest.fixture
def mainspring_app(request: pytest.FixtureRequest) -> Source | tuple[Source, ...]:
    """The App, or Apps, whose handlers run; none: those of what is submitted.

    Override it, or set `mainspring_app = module:app`.
    """
    references: list[str] = request.config.getini(_INI)
    if not references:
        return ()
    from mainspring.workers.registry import Registry

    return Registry.load(*references).apps


@pytest.fixture
def mainspring(request: pytest.FixtureRequest, mainspring_app: Source | tuple[Source, ...]) -> Iterator[Mainspring]:
    """A scheduler and a worker in memory, under a clock that the test moves."""
    from mainspring.testing.kit import Mainspring

    apps: tuple[Any, ...] = mainspring_app if isinstance(mainspring_app, tuple) else (mainspring_app,)
    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(_MARKER))):  # the closest to the test comes last, and wins
        apps = marker.args or apps
        options |= marker.kwargs
    with Mainspring(*apps, **options) as kit:
        yield kit


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the history of all jobs to the report of a test that failed."""
    report = yield
    story = getattr(getattr(item, "funcargs", {}).get("mainspring"), "story", None)
    if report.failed and report.when == "call" and story is not None:
        report.sections.append(("Mainspring: what happened to the jobs", story()))
    return report
