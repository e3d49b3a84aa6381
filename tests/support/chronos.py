"""The Chronos check: every target, a planned time with its window, is met by a completed run of its own.

Targets are what should have happened, by plain arithmetic over the definitions; runs are what happened, as the handlers
wrote it down outside the scheduler. Neither is asked of the scheduler that is on trial.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Run", "Target", "Verdict", "check", "multiples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A time at which a schedule was to fire. A run meets it that begins in [`due_ms`, `until_ms`]."""

    schedule_id: str
    due_ms: float
    until_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as its handler saw it. `ended_ms` None: it never came to its end. `due_ms`: what it says it is a run of."""

    schedule_id: str
    begun_ms: float
    ended_ms: float | None
    due_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How targets and runs go together.

    `met` pairs each target with the run that meets it, as many as can be; `missed` have none, `extra` are completed
    runs of no target. `incomplete` runs meet nothing. `unnamed` are targets that no completed run says it is a run of,
    `repeated` those that several do.
    """

    met: tuple[tuple[Target, Run], ...]
    missed: tuple[Target, ...]
    extra: tuple[Run, ...]
    incomplete: tuple[Run, ...]
    unnamed: tuple[Target, ...]
    repeated: tuple[Target, ...]

    def lateness_ms(self) -> list[float]:
        """How long after its time the run of each target that was met began, in order of size."""
        return sorted(run.begun_ms - target.due_ms for target, run in self.met)


def check(targets: Iterable[Target], runs: Iterable[Run]) -> Verdict:
    """Matches the runs of each schedule with its targets so that as many targets as possible are met; O(n log n)."""
    wanted: dict[str, list[Target]] = defaultdict(list)
    found: dict[str, list[Run]] = defaultdict(list)
    incomplete: list[Run] = []
    for target in targets:
        wanted[target.schedule_id].append(target)
    for run in runs:
        if run.ended_ms is None:
            incomplete.append(run)
        else:
            found[run.schedule_id].append(run)
    met: list[tuple[Target, Run]] = []
    missed: list[Target] = []
    extra: list[Run] = []
    for schedule_id in sorted(wanted.keys() | found.keys()):
        _match(wanted[schedule_id], found[schedule_id], met, missed, extra)
    told = Counter((run.schedule_id, run.due_ms) for each in found.values() for run in each)
    every = [target for each in wanted.values() for target in each]
    return Verdict(
        met=tuple(met),
        missed=tuple(missed),
        extra=tuple(extra),
        incomplete=tuple(incomplete),
        unnamed=tuple(target for target in every if told[target.schedule_id, target.due_ms] == 0),
        repeated=tuple(target for target in every if told[target.schedule_id, target.due_ms] > 1),
    )


def _match(
    targets: Sequence[Target],
    runs: Sequence[Run],
    met: list[tuple[Target, Run]],
    missed: list[Target],
    extra: list[Run],
) -> None:
    """Each run, in the order in which they began, goes to the open target whose window closes first.

    To give it to another cannot meet more: whatever can still meet that one can meet the one that closes later, too.
    """
    coming = sorted(targets, key=lambda target: target.due_ms)
    taken = 0
    open_: list[tuple[float, int]] = []
    for run in sorted(runs, key=lambda run: run.begun_ms):
        while taken < len(coming) and coming[taken].due_ms <= run.begun_ms:
            heapq.heappush(open_, (coming[taken].until_ms, taken))
            taken += 1
        while open_ and open_[0][0] < run.begun_ms:
            missed.append(coming[heapq.heappop(open_)[1]])
        if open_:
            met.append((coming[heapq.heappop(open_)[1]], run))
        else:
            extra.append(run)
    missed += [coming[number] for _, number in open_]
    missed += coming[taken:]


def multiples(every_ms: int, anchor_ms: int, after_ms: int, until_ms: int) -> range:
    """The instants anchor + n · every in (after, until]."""
    first = anchor_ms + ((after_ms - anchor_ms) // every_ms + 1) * every_ms
    return range(first, until_ms + 1, every_ms)
