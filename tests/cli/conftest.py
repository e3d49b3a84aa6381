"""A command line without the settings of the machine that runs the tests."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mainspring.cli import output, run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.out)


Cli = Callable[..., Ran]


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
