"""What the handlers wrote down, read back: side effects, counted outside the scheduler."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

AttemptKey: TypeAlias = tuple[str, int]
"""Job id and number of the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger. `at_ns`: monotonic, the same clock in all processes of the machine.

    `life`: which life of which worker, also where the attempt ran in a process of its own.
    """

    what: str
    job_id: str
    attempt: int
    at_ns: int
    pid: int
    life: str


class Ledger:
    """A snapshot of all side effects so far."""

    def __init__(self, directory: Path) -> None:
        self.began: dict[AttemptKey, list[Entry]] = defaultdict(list)
        self.ended: dict[AttemptKey, list[Entry]] = defaultdict(list)
        for path in directory.glob("*.tsv"):
            for entry in _entries(path):
                book = self.began if entry.what == "began" else self.ended
                book[entry.job_id, entry.attempt].append(entry)

    def running_in(self, pid: int) -> set[AttemptKey]:
        """Attempts that a process has begun and not ended."""
        return {
            key
            for key, entries in self.began.items()
            if any(entry.pid == pid for entry in entries) and not self.ended.get(key)
        }

    def begun_twice(self) -> set[AttemptKey]:
        """Attempts that began more than once: there must be none."""
        return {key for key, entries in self.began.items() if len(entries) > 1}

    def duplicates(self) -> Mapping[str, int]:
        """Jobs whose code began more than once, with how often: what a user must be ready for."""
        times = Counter(job_id for job_id, _ in self.began)
        return {job_id: count for job_id, count in times.items() if count > 1}

    def overlaps(self, dead_at_ns: Mapping[str, int]) -> list[AttemptKey]:
        """Attempts that began while an earlier one of their job still ran; `dead_at_ns` tells when a life ended."""
        found = []
        for (job_id, attempt), entries in self.began.items():
            for earlier in range(1, attempt):
                before = self.began.get((job_id, earlier))
                if not before:
                    continue
                ended = self.ended.get((job_id, earlier))
                over_ns = ended[0].at_ns if ended else dead_at_ns.get(before[0].life)
                if over_ns is None or over_ns > entries[0].at_ns:
                    found.append((job_id, attempt))
        return found


def _entries(path: Path) -> list[Entry]:
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        what, job_id, attempt, at_ns, pid, life = line.split("\t")
        entries.append(Entry(what=what, job_id=job_id, attempt=int(attempt), at_ns=int(at_ns), pid=int(pid), life=life))
    return entries
