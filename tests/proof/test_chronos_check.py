"""The Chronos check is itself checked: against brute force, and against faults that it must see."""

from collections.abc import Sequence
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.chronos import Run, Target, check, multiples

INSTANTS = st.integers(0, 12)
WINDOWS = st.tuples(INSTANTS, st.integers(0, 5))
SCHEDULES = st.sampled_from(["a", "b"])


def targets_of(windows: Sequence[tuple[str, tuple[int, int]]]) -> list[Target]:
    return [Target(schedule_id=each, due_ms=due, until_ms=due + width) for each, (due, width) in windows]


def runs_of(begun: Sequence[tuple[str, int, bool]]) -> list[Run]:
    return [
        Run(schedule_id=each, begun_ms=at, ended_ms=at + 1 if done else None, due_ms=at) for each, at, done in begun
    ]


def fits(target: Target, run: Run) -> bool:
    return (
        target.schedule_id == run.schedule_id
        and run.ended_ms is not None
        and target.due_ms <= run.begun_ms <= target.until_ms
    )


def most_that_can_be_met(targets: Sequence[Target], runs: Sequence[Run]) -> int:
    """By trying every way to give the runs away."""

    @cache
    def best(number: int, free: frozenset[int]) -> int:
        if number == len(targets):
            return 0
        without = best(number + 1, free)
        given = [1 + best(number + 1, free - {each}) for each in free if fits(targets[number], runs[each])]
        return max([without, *given])

    return best(0, frozenset(range(len(runs))))


@settings(max_examples=400, deadline=None)
@given(
    windows=st.lists(st.tuples(SCHEDULES, WINDOWS), max_size=6),
    begun=st.lists(st.tuples(SCHEDULES, INSTANTS, st.booleans()), max_size=6),
)
def test_as_many_targets_are_met_as_by_any_other_way_to_give_the_runs_away(
    windows: list[tuple[str, tuple[int, int]]], begun: list[tuple[str, int, bool]]
) -> None:
    targets, runs = targets_of(windows), runs_of(begun)

    verdict = check(targets, runs)

    # each pair fits, nothing is used twice, nothing is left out
    assert all(fits(target, run) for target, run in verdict.met)
    met = [target for target, _ in verdict.met]
    used = [run for _, run in verdict.met]
    order = str
    assert sorted([*met, *verdict.missed], key=order) == sorted(targets, key=order)
    assert sorted([*used, *verdict.extra, *verdict.incomplete], key=order) == sorted(runs, key=order)
    assert len(met) == most_that_can_be_met(targets, runs)


def test_a_missed_target_a_run_too_many_and_one_that_never_ended_are_told() -> None:
    targets = targets_of([("a", (0, 5)), ("a", (10, 5)), ("a", (20, 5))])
    runs = [
        Run(schedule_id="a", begun_ms=1, ended_ms=2, due_ms=0),
        Run(schedule_id="a", begun_ms=2, ended_ms=3, due_ms=0),
        Run(schedule_id="a", begun_ms=11, ended_ms=None, due_ms=10),
        Run(schedule_id="a", begun_ms=27, ended_ms=28, due_ms=20),
        Run(schedule_id="b", begun_ms=1, ended_ms=2, due_ms=0),
    ]

    verdict = check(targets, runs)

    assert [target.due_ms for target, _ in verdict.met] == [0]
    assert [target.due_ms for target in verdict.missed] == [10, 20]
    assert [(run.schedule_id, run.begun_ms) for run in verdict.extra] == [("a", 2), ("a", 27), ("b", 1)]
    assert verdict.incomplete == (runs[2],)
    assert [target.due_ms for target in verdict.unnamed] == [10]
    assert [target.due_ms for target in verdict.repeated] == [0]
    assert verdict.lateness_ms() == [1]


@given(every=st.integers(1, 50), anchor=st.integers(-100, 100), after=st.integers(-100, 100), span=st.integers(0, 200))
def test_multiples_are_those_of_a_search(every: int, anchor: int, after: int, span: int) -> None:
    searched = [at for at in range(after + 1, after + span + 1) if (at - anchor) % every == 0]

    assert list(multiples(every, anchor, after, after + span)) == searched
