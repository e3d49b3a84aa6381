"""A command line without the settings of the machine that runs the tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainspring.cli import output, run
from tests.cli.command_line import Cli, Ran
from tests.cli.installation import Installation, Site, installation


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """Runs a command in this process, in a directory of its own, without the environment's settings."""
    for name in [name for name in os.environ if name.startswith("MAINSPRING_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MAINSPRING_SECRETS_DIR", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Ran:
        # The consoles keep the streams that they were made for.
        output.stdout.cache_clear()
        output.stderr.cache_clear()
        capsys.readouterr()
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Ran(code=code, out=captured.out, err=captured.err)

    yield invoke
    output.stdout.cache_clear()
    output.stderr.cache_clear()


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Topics, a scheduler, a worker with the sample jobs, and a projector."""
    with installation(kafka, tmp_path_factory.mktemp("installation")) as made:
        yield made


@pytest.fixture
def installed(site: Site, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Runs commands in this process with the settings of the installation."""
    return Installation(site=site, cli=cli, monkeypatch=monkeypatch)
