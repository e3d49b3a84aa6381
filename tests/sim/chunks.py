"""Seeds in chunks, each run once in a test session, whoever asks first: its processes share the work and the counts."""

import fcntl
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

__all__ = ["CHUNKS", "SEEDS_PER_CHUNK", "Chunks"]

SEEDS_PER_CHUNK = 10
CHUNKS = 30

_ROOT = Path(__file__).parents[2]


class Chunks:
    """What came of the chunks that have been run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def of(tmp_path_factory: pytest.TempPathFactory) -> "Chunks":
        """Those of this test session, which all of its processes share."""
        base = tmp_path_factory.getbasetemp()
        folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "simulation"
        folder.mkdir(exist_ok=True)
        return Chunks(folder)

    def run(self, number: int) -> tuple[list[str], Counter[str]]:
        """One chunk: the reports of the seeds that failed, and the paths that were taken."""
        path = self._folder / f"{number}.json"
        with (self._folder / f"{number}.lock").open("w") as lock:
            # Whoever holds it is at work on this very chunk.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _run(number, path)
        told = json.loads(path.read_text())
        return told["failed"], Counter(told["seen"])

    def done(self) -> list[int]:
        """The chunks that have been run already."""
        return sorted(int(path.stem) for path in self._folder.glob("*.json"))


def _run(number: int, told: Path) -> None:
    """In a process that stands back: the tests beside it wait for brokers and count the time."""
    seeds = f"{number * SEEDS_PER_CHUNK + 1}-{(number + 1) * SEEDS_PER_CHUNK}"
    half = told.with_suffix(".part")
    command = [sys.executable, "-m", "tests.sim.run", "--seeds", seeds, "--nice", "10", "--told", str(half)]
    ran = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert half.exists(), ran.stderr
    half.rename(told)
