"""The windowed indexes against plain lists: the order is the same for any window, table and transactions."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core.history import History
from mainspring.processors.core.index.entries import FINISHED_PREFIX
from mainspring.processors.core.index.keys import (
    TimeKey,
    decode_numbers,
    decode_time_key,
    encode_numbers,
    encode_time_key,
)
from mainspring.processors.core.index.timed import TimedIndex
from tests.support.index_store import DictStore

numbers = st.one_of(
    st.integers(),
    st.integers(-(1 << 70), 1 << 70),
    st.integers((1 << 53) - 3, (1 << 53) + 3),
    st.integers((1 << 63) - 3, (1 << 63) + 3),
    st.floats(allow_nan=False),
    st.sampled_from([0, 0.0, -0.0, 1, 1.0, float("inf"), -float("inf"), -(10**300)]),
)
keys = st.lists(numbers, max_size=4).map(tuple)
time_keys = st.tuples(st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 62), st.text(max_size=4))


@given(one=keys, other=keys)
def test_keys_sort_as_bytes_as_they_do_as_numbers(one: tuple[int | float, ...], other: tuple[int | float, ...]) -> None:
    # The first elements that differ decide; with what follows in a table, the shorter key is still the smaller.
    assert (encode_numbers(one) + b"\xff" < encode_numbers(other) + b"\x00") == (one < other)
    assert (encode_numbers(one) == encode_numbers(other)) == (one == other)


@given(key=keys, before=st.binary(max_size=3), behind=st.binary(max_size=3))
def test_a_key_is_read_back_from_among_other_bytes(key: tuple[int | float, ...], before: bytes, behind: bytes) -> None:
    encoded = encode_numbers(key)
    assert decode_numbers(before + encoded + behind, len(before)) == (key, len(before) + len(encoded))


def test_an_integer_beyond_every_double_is_infinite() -> None:
    assert decode_numbers(encode_numbers((10**400, -(10**400))), 0)[0] == (float("inf"), -float("inf"))


@given(one=time_keys, other=time_keys)
def test_time_keys_sort_as_bytes_as_they_do_as_tuples(one: TimeKey, other: TimeKey) -> None:
    assert (encode_time_key(one) < encode_time_key(other)) == (one < other)
    assert decode_time_key(b"#w" + encode_time_key(one), 2) == one


Step = tuple[str, int, int]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 12), st.integers(0, 9)),
        st.tuples(st.just("add"), st.integers(0, 12), st.integers(0, 9)),
        st.tuples(st.just("add_taken"), st.integers(0, 12), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.integers(0, 40), st.just(0)),
        st.tuples(st.just("pop"), st.integers(0, 12), st.integers(1, 4)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
        st.tuples(st.just("roll back"), st.just(0), st.just(0)),
    ),
    max_size=70,
)


class Model:
    """An index over a store, and beside it what has been committed and what is here now, as plain sets."""

    def __init__(self, window: int) -> None:
        self.store = DictStore()
        self.window = window
        self.committed: set[TimeKey] = set()
        self.open()

    def open(self) -> None:
        self.index: TimedIndex[int] = TimedIndex(
            b"#w",
            lambda value: b"%d" % value,
            lambda key, data: int(data),
            store=self.store,
            window=self.window,
        )
        self.index.open(len(self.committed))
        self.here = set(self.committed)
        self.taken: set[TimeKey] = set()

    def take(self, step: str, at: int, number: int) -> None:
        key = (at, number, f"job-{number}")
        match step:
            case "add" if key not in self.here:
                self.index.add(key, number)
                self.here.add(key)
            case "add_taken" if key not in self.here:
                self.index.add_taken(key, number)
                self.here.add(key)
                self.taken.add(key)
            case "remove" if self.here:
                gone = sorted(self.here)[at % len(self.here)]
                assert self.index.remove(gone) == (gone not in self.taken)
                self.here.discard(gone)
                self.taken.discard(gone)
            case "pop":
                due = sorted(key for key in self.here - self.taken if key[0] <= at)[:number]
                assert self.index.pop_due(at, number) == [(key, key[1]) for key in due]
                self.taken.update(due)
            case "commit":
                self.store.write(self.index.drain())
                self.committed = set(self.here)
            case "roll back":
                self.open()
            case _:
                pass

    def check(self) -> None:
        assert len(self.index) == len(self.here)
        assert self.index.next_at() == min((key[0] for key in self.here - self.taken), default=None)
        assert all(self.index.holds(key) == (key not in self.taken) for key in self.here)


@given(taken=steps, window=st.integers(1, 6))
def test_a_windowed_index_gives_what_a_sorted_list_gives(taken: Sequence[Step], window: int) -> None:
    model = Model(window)
    for step in taken:
        model.take(*step)
        model.check()
    model.take("commit", 0, 0)
    assert model.store.rows == {b"#w" + encode_time_key(key): b"%d" % key[1] for key in model.here}


def test_memory_stays_within_the_window_however_much_waits() -> None:
    model = Model(window=100)
    for number in range(5_000):
        model.take("add", 5_000 - number if number % 2 else number, number)
        if number % 50 == 0:
            model.take("commit", 0, 0)
        assert model.index.in_memory <= 100


def test_a_clock_that_is_set_back_takes_nothing_twice() -> None:
    model = Model(window=4)
    for number in range(3):
        model.take("add_taken", 1_000, number)
    for number in range(3, 40):
        model.take("add", number, number)
        model.check()
    model.take("commit", 0, 0)
    for _ in range(40):
        model.take("pop", 2_000, 3)
        model.check()
    assert model.taken == model.here


history_steps = st.lists(
    st.one_of(
        st.tuples(st.just("end"), st.integers(0, 30), st.integers(0, 999)),
        st.tuples(st.just("evict"), st.integers(1, 4), st.just(0)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
        st.tuples(st.just("roll back"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(taken=history_steps, window=st.integers(1, 5), max_count=st.integers(0, 6))
def test_history_keeps_so_many_and_loses_none_of_the_rest_whatever_the_window(
    taken: list[tuple[str, int, int]], window: int, max_count: int
) -> None:
    store = DictStore()
    history = History(max_count, 10**9, store=store, window=window)
    here: list[str] = []
    committed: list[str] = []
    for seq, (step, number, at_ms) in enumerate(taken):
        if step == "end":
            history.add(f"job-{seq}", seq, at_ms)
            here.append(f"job-{seq}")
        elif step == "evict":
            for job_id in history.evict(0, number):
                here.remove(job_id)
        elif step == "commit":
            store.write(history.drain())
            committed = list(here)
        else:
            history = History(max_count, 10**9, store=store, window=window)
            history.open(len(committed))
            here = list(committed)
        assert len(history) == len(here)
        assert (history.next_at() == 0) == (len(here) > max_count)
    evicted = history.evict(0, 1_000)
    assert len(history) == min(len(here), max_count)
    assert len(set(evicted)) == len(evicted)
    assert set(evicted) <= set(here)
    store.write(history.drain())
    left = {decode_time_key(key, len(FINISHED_PREFIX))[2] for key in store.rows}
    assert left == set(here) - set(evicted)


@given(ends=st.lists(st.integers(0, 99), max_size=40, unique=True), window=st.integers(1, 5))
def test_a_later_owner_forgets_the_oldest_first(ends: list[int], window: int) -> None:
    store = DictStore()
    history = History(10, 10**9, store=store, window=window)
    for seq, at_ms in enumerate(ends):
        history.add(f"job-{at_ms}", seq, at_ms)
    store.write(history.drain())
    later = History(5, 10**9, store=store, window=window)
    later.open(len(ends))
    assert later.evict(0, 1_000) == [f"job-{at_ms}" for at_ms in sorted(ends)[: max(0, len(ends) - 5)]]
