"""The due index against a plain dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from mainspring.processors.core.due import DueIndex

names = st.sampled_from("abcdefgh")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), names, st.integers(0, 20)),
        st.tuples(st.just("discard"), names, st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.integers(0, 20)),
    )
)


@given(steps=steps, limit=st.integers(1, 3))
def test_what_falls_due_is_what_a_dictionary_says(steps: list[tuple[str, str, int]], limit: int) -> None:
    index: DueIndex[str] = DueIndex()
    model: dict[str, int] = {}
    for step, name, at in steps:
        if step == "add":
            index.add(name, at, name.upper())
            model[name] = at
        elif step == "discard":
            assert index.discard(name) == (model.pop(name, None) is not None)
        else:
            popped = index.pop_due(at, limit)
            due = sorted(moment for moment in model.values() if moment <= at)[:limit]
            assert [model[each] for each, _ in popped] == due
            for each, value in popped:
                assert value == each.upper()
                del model[each]
        assert len(index) == len(model)
        assert set(index) == set(model)
        assert index.next_at() == min(model.values(), default=None)


def test_equal_times_fall_due_in_the_order_they_were_added() -> None:
    index: DueIndex[None] = DueIndex()
    index.load([("b", 5, None), ("a", 5, None)])
    index.add("c", 5, None)
    assert [name for name, _ in index.pop_due(5, 10)] == ["b", "a", "c"]


def test_withdrawing_is_forgetting() -> None:
    index: DueIndex[None] = DueIndex()
    for number in range(10_000):
        index.add(str(number), number, None)
    for number in range(9_999):
        index.discard(str(number))
    index.add("last", 1, None)
    assert len(index._heap) < 200
