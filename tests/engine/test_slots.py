"""Slots, and several processes as one."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mainspring.processors.engine.errors import ConfigurationError
from mainspring.processors.engine.slot import hold_slot, slot_of
from mainspring.processors.engine.supervisor import Backoff, supervise
from tests.support.waiting import eventually

HOLDER = """
import sys, time
from pathlib import Path
from mainspring.processors.engine.slot import hold_slot
slot = hold_slot("host", Path(sys.argv[1]), exact=False)
print(slot.name, flush=True)
time.sleep(60)
"""


def hold_elsewhere(locks: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(locks)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_each_process_of_a_host_holds_a_slot_of_its_own_and_a_dead_ones_is_free_again(tmp_path: Path) -> None:
    first, first_name = hold_elsewhere(tmp_path)
    second, second_name = hold_elsewhere(tmp_path)
    with hold_slot("host", tmp_path, exact=False) as mine:
        assert [first_name, second_name, mine.name] == ["host-0", "host-1", "host-2"]

    end(second)
    with hold_slot("host", tmp_path, exact=False) as again:
        assert again.name == "host-1"
    end(first)


def test_an_exact_slot_that_is_held_is_refused(tmp_path: Path) -> None:
    with (
        hold_slot("ordinal-3", tmp_path, exact=True),
        pytest.raises(ConfigurationError, match="held by another process"),
    ):
        hold_slot("ordinal-3", tmp_path, exact=True)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", "x" * 101])
def test_a_name_that_cannot_be_a_transactional_id_or_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="slot"):
        hold_slot(name, tmp_path, exact=True)


def test_the_slot_of_a_dead_process_is_found_and_held_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    process, name = hold_elsewhere(tmp_path)
    assert slot_of(process.pid, tmp_path) is None

    end(process)
    slot = slot_of(process.pid, tmp_path)

    assert slot is not None
    assert slot.name == name
    slot.release()
    assert slot_of(os.getpid(), tmp_path) is None


def test_a_process_is_started_again_at_once_after_a_long_life_and_later_and_later_after_short_ones() -> None:
    backoff = Backoff()

    short = [backoff.after_life_of(0.1) for _ in range(10)]

    assert short[:4] == [0.0, 0.1, 0.2, 0.4]
    assert max(short) == 10.0
    assert backoff.after_life_of(60.0) == 0.0


CHILD = """
import sys, time, os, signal
from pathlib import Path
Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(60)
"""


class Run:
    """A supervisor in a thread."""

    def __init__(self, processes: int, command: list[str], **more: object) -> None:
        self.stop = threading.Event()
        self.code: int | None = None
        self.thread = threading.Thread(target=self._run, args=(processes, command, more))
        self.thread.start()

    def _run(self, processes: int, command: list[str], more: dict[str, object]) -> None:
        self.code = supervise(processes, command, stop=self.stop, **more)  # type: ignore[arg-type]  # passed through

    def end(self) -> int | None:
        self.stop.set()
        self.thread.join(20)
        return self.code


def alive(directory: Path) -> list[int]:
    return sorted(int(each.name) for each in directory.iterdir())


def test_a_child_that_dies_is_fenced_and_replaced_and_all_end_together(tmp_path: Path) -> None:
    fenced: list[int] = []
    run = Run(2, [sys.executable, "-c", CHILD, str(tmp_path)], fence=fenced.append)
    eventually(lambda: len(alive(tmp_path)) == 2)
    victim = alive(tmp_path)[0]

    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(alive(tmp_path)) == 3)

    assert fenced == [victim]
    assert run.end() == 0
    for pid in alive(tmp_path):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_an_exit_code_that_a_new_start_cannot_mend_ends_everything(tmp_path: Path) -> None:
    run = Run(1, [sys.executable, "-c", "raise SystemExit(78)"], permanent=frozenset({78}))

    run.thread.join(20)

    assert run.code == 78


def test_a_fence_that_fails_does_not_keep_the_child_from_coming_back(tmp_path: Path) -> None:
    def fail(pid: int) -> None:
        raise OSError("no broker")

    run = Run(1, [sys.executable, "-c", CHILD, str(tmp_path)], fence=fail)
    eventually(lambda: len(alive(tmp_path)) == 1)

    os.kill(alive(tmp_path)[0], signal.SIGKILL)
    eventually(lambda: len(alive(tmp_path)) == 2)

    assert run.end() == 0
