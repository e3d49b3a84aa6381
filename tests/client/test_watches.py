"""Which watches a client knows: those that someone holds, and no trace of the others."""

from mainspring.client.watch import Start, Watch
from mainspring.client.watches import Watches


def _watch(job_id: str) -> Watch:
    return Watch(job_id, 0, Start(offset=0), "c")


def test_the_first_watch_of_a_key_is_known_for_as_long_as_it_lives() -> None:
    watches, first, second = Watches(), _watch("j"), _watch("j")

    assert watches.add(first)
    assert watches.add(first)
    assert not watches.add(second)
    assert watches.get(b"j") is first

    del first
    assert watches.get(b"j") is None
    assert watches.add(second)
    assert watches.alive() == [second]


def test_what_is_kept_of_the_dead_is_no_more_than_of_the_living() -> None:
    # given some that stay
    watches = Watches()
    held = [_watch(f"held-{number}") for number in range(3_000)]
    for watch in held:
        watches.add(watch)

    # when many more come and go
    for number in range(50_000):
        watches.add(_watch(f"gone-{number}"))

    # then
    assert watches.alive() == held
    assert len(watches._refs) <= 2 * len(held) + 1
