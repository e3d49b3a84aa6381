"""Whatever ends the demo in the middle, nothing that it started outlives it."""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

_PATIENCE_S = 60.0
# Kafka, two schedulers, two workers and the projector; side processes of workers come on top.
_MEMBERS = 6


class _Demo:
    """A demo that runs, and the lines that it says."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: queue.Queue[str] = queue.Queue()
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.lines.put(line)
        self.lines.put("")

    def close(self) -> None:
        """Until all that it has said is read."""
        self._reader.join(_PATIENCE_S)

    def wait_for(self, text: str) -> None:
        """Until it has said so."""
        while True:
            line = self.lines.get(timeout=_PATIENCE_S)
            self.said.append(line)
            assert line, f"the demo ended without {text!r}: {''.join(self.said)}"
            if text in line:
                return

    def family(self) -> list[psutil.Process]:
        """All that it has started and that runs now, with the children of those."""
        return psutil.Process(self.process.pid).children(recursive=True)


@contextmanager
def _demo(tmp_path: Path) -> Iterator[_Demo]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "mainspring.cli", "demo"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=ours | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
    )
    demo = _Demo(process)
    try:
        yield demo
    finally:
        # A test that fails leaves nothing running either.
        family = demo.family() if process.poll() is None else []
        process.kill()
        process.wait()
        for relative in family:
            if relative.is_running():
                relative.kill()
        demo.close()


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        pytest.param([signal.SIGINT], 130, id="Ctrl-C"),
        pytest.param([signal.SIGINT, signal.SIGINT], 130, id="Ctrl-C twice"),
        pytest.param(
            [signal.SIGKILL],
            -signal.SIGKILL,
            id="SIGKILL",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no parent-death signal"),
        ),
    ],
)
def test_a_demo_that_is_ended_in_the_middle_leaves_no_process_behind(
    tmp_path: Path, signals: list[signal.Signals], code: int
) -> None:
    with _demo(tmp_path) as demo:
        # Given a demo whose processes all run, those for CPU-bound jobs too, with attempts on their way
        demo.wait_for("thumbnail-0")
        family = demo.family()
        assert len(family) >= _MEMBERS

        # When it is ended
        for number in signals:
            demo.process.send_signal(number)

        # Then it ends, and of all that ran nothing is left
        assert demo.process.wait(_PATIENCE_S) == code
        _, alive = psutil.wait_procs(family, timeout=_PATIENCE_S / 4)
        assert alive == []


def test_a_demo_that_is_ended_while_it_starts_leaves_no_process_behind(tmp_path: Path) -> None:
    with _demo(tmp_path) as demo:
        demo.wait_for("Kafka is ready")
        family = demo.family()

        demo.process.send_signal(signal.SIGTERM)

        assert demo.process.wait(_PATIENCE_S) == 130
        _, alive = psutil.wait_procs(family, timeout=_PATIENCE_S / 4)
        assert alive == []
        # The data of its Kafka went with it; what it wrote about itself stays.
        assert [path.name for path in tmp_path.iterdir() if "kafka" in path.name] == []
