"""What processes have used: CPU time with their children, and the bytes of a broker's log."""

import os
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

__all__ = ["Meter", "Used", "cpu_s", "log_bytes", "peak_resident_mib"]

_PROC = Path("/proc")
# In /proc/<pid>/stat, counted from behind the name, which may hold spaces: user and system time in ticks.
_USER_TICKS, _SYSTEM_TICKS = 11, 12


class Used:
    """CPU seconds by process between two looks, and the wall time between them."""

    __slots__ = ("cpu_s", "wall_s")

    def __init__(self, cpu_s: Mapping[str, float], wall_s: float) -> None:
        self.cpu_s = cpu_s
        self.wall_s = wall_s

    def per_job_us(self, jobs: int) -> dict[str, float]:
        """CPU microseconds per job by process, and their `sum`."""
        by_process = {name: round(used * 1e6 / jobs, 1) for name, used in self.cpu_s.items()}
        return by_process | {"sum": round(sum(self.cpu_s.values()) * 1e6 / jobs, 1)}

    def percent(self, name: str) -> float | None:
        """Share of one core that a process used; None for one that was not measured."""
        used = self.cpu_s.get(name)
        return None if used is None else round(100 * used / self.wall_s, 2)

    def percents(self) -> dict[str, float]:
        """Share of one core by process."""
        return {name: round(100 * used / self.wall_s, 2) for name, used in self.cpu_s.items()}


class Meter:
    """Measures from its making to `read`: the given processes with their children, and this one alone as `client`."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._before = self._look()
        self._began_s = time.monotonic()

    def read(self) -> Used:
        """What was used so far."""
        wall_s = time.monotonic() - self._began_s
        now = self._look()
        used = {name: now[name] - before for name, before in self._before.items() if name in now}
        return Used(MappingProxyType(used), wall_s)

    def _look(self) -> dict[str, float]:
        found = {name: cpu_s(pid) for name, pid in self._pids.items()}
        return {name: used for name, used in found.items() if used is not None} | {"client": time.process_time()}


def cpu_s(pid: int) -> float | None:
    """CPU seconds of a process and its living descendants so far; None where the system does not tell."""
    if (_PROC / "self" / "stat").exists():
        return _cpu_s_from_proc(pid)
    return _cpu_s_from_ps(pid)


def peak_resident_mib(pid: int) -> float | None:
    """The most memory a process has had resident so far, in MiB; None where the system does not tell."""
    try:
        status = (_PROC / str(pid) / "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return None if peak is None else round(int(peak.split()[1]) / 1024, 1)


def _cpu_s_from_proc(pid: int) -> float | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
        tasks = list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return None
    numbers = stat[stat.rindex(")") + 2 :].split()
    own = (int(numbers[_USER_TICKS]) + int(numbers[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu_s_from_proc(child) or 0.0 for child in _children(tasks))


def _children(tasks: Iterable[Path]) -> list[int]:
    found: list[int] = []
    for task in tasks:
        try:
            found += map(int, (task / "children").read_text(encoding="ascii").split())
        except OSError:
            # The thread has ended, or the kernel was built without this file: then children go unmeasured.
            continue
    return found


def _cpu_s_from_ps(pid: int) -> float | None:
    try:
        listing = subprocess.run(
            ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "time="],  # noqa: S607 - wherever the system keeps it
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    times: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for line in listing.splitlines():
        own, parent, used = line.split()
        times[int(own)] = seconds_of(used)
        children.setdefault(int(parent), []).append(int(own))
    if pid not in times:
        return None
    total, left = 0.0, [pid]
    while left:
        each = left.pop()
        total += times[each]
        left += children.get(each, [])
    return total


def seconds_of(text: str) -> float:
    """CPU time as `ps` prints it, in seconds: `[days-][hours:]minutes:seconds[.fraction]`."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + 86_400 * int(days or 0)


def log_bytes(data: Path, prefix: str) -> dict[str, int]:
    """Bytes in the log of each topic that begins with `prefix`, in the data directory of a node, without the prefix."""
    found: dict[str, int] = {}
    for partition in data.iterdir():
        topic = partition.name.rpartition("-")[0]
        if partition.is_dir() and topic.startswith(prefix):
            size = sum(file.stat().st_size for file in partition.glob("*.log"))
            found[topic.removeprefix(prefix)] = found.get(topic.removeprefix(prefix), 0) + size
    return found
