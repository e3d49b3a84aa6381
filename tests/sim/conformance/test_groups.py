"""Members, assignments and reading, on the simulated cluster as on the real one."""

import pytest

from mainspring.processors.engine.errors import OffsetOutOfRangeError, TransactionError
from mainspring.processors.engine.ports import Mark
from tests.sim.conformance.cluster import PARTITIONS, Case, Member


def starts(case: Case, member: Member, offset: int = 0) -> None:
    """Reads all inputs of all partitions of a member."""
    member.inputs.start({(topic, number): offset for topic in case.topics.inputs for number in member.owned})


def test_a_lone_member_gets_everything_and_holds_all_inputs_of_each_partition(case: Case) -> None:
    member = case.owner()

    assert member.told == [("assigned", [0, 1])]
    assert member.inputs.owned() == {(topic, n) for topic in case.topics.inputs for n in range(PARTITIONS)}


def test_nothing_is_read_before_it_is_started(case: Case) -> None:
    case.cluster.write(case.commands, [b"one"])
    member = case.owner()
    for _ in range(10):
        member.read()
    assert member.values == []

    starts(case, member)

    case.cluster.until(lambda: member.read().values)
    assert member.values == [(case.topics.commands, 0, 0, b"one")]


def test_a_second_member_gets_a_partition_once_the_first_has_let_go_of_it(case: Case) -> None:
    first = case.owner()
    second = case.member()
    both: list[set[int]] = []

    def shared() -> bool:
        first.read()
        both.append(first.owned & second.owned)
        second.read()
        both.append(first.owned & second.owned)
        return len(first.owned) == len(second.owned) == 1

    case.cluster.until(shared)

    assert not any(both)
    assert first.told[1:] == [("revoked", sorted(second.owned))]
    assert second.told == [("assigned", sorted(second.owned))]


def test_a_member_that_leaves_hands_over_at_once(case: Case) -> None:
    first = case.owner()
    second = case.member()
    case.share(first, second)

    first.close()

    case.cluster.until(lambda: len(second.read().owned) == PARTITIONS)
    assert first.told[-1][0] == "revoked"


def test_an_evicted_member_is_told_that_it_lost_everything_and_joins_again(case: Case) -> None:
    member = case.owner()

    case.cluster.evict_all()

    case.cluster.until(lambda: len(member.read().told) == 3)
    assert member.told == [("assigned", [0, 1]), ("lost", [0, 1]), ("assigned", [0, 1])]


def test_an_evicted_member_that_does_not_read_hears_of_nothing_and_still_holds_its_places(case: Case) -> None:
    member = case.owner()
    case.cluster.evict_all()
    heir = case.member()

    case.cluster.until(lambda: len(heir.read().owned) == PARTITIONS)

    assert member.told == [("assigned", [0, 1])]
    assert len(member.inputs.owned()) == 3 * PARTITIONS


def test_a_claim_of_a_member_holds_and_is_answered_inside_a_read(case: Case) -> None:
    member = case.owner()

    answer = member.inputs.claim({case.commands: Mark(offset=3, metadata="mine")})
    case.cluster.wait(0.2)
    assert not answer.done()
    case.cluster.until(lambda: member.read().told and answer.done())
    answer.result()

    found = case.answer(lambda: case.admin.committed([case.commands], stable=True))
    assert found == {case.commands: Mark(offset=3, metadata="mine")}


def test_a_claim_of_an_evicted_member_is_refused(case: Case) -> None:
    member = case.owner()
    case.cluster.evict_all()

    answer = member.inputs.claim({case.commands: Mark(offset=3)})
    case.cluster.until(lambda: member.read().told and answer.done())

    with pytest.raises(TransactionError):
        answer.result()
    assert case.answer(lambda: case.admin.committed([case.commands], stable=True)) == {case.commands: None}


def test_places_can_be_read_again_from_an_earlier_offset(case: Case) -> None:
    member = case.owner()
    case.cluster.write(case.commands, [b"%d" % number for number in range(5)])
    starts(case, member)
    case.cluster.until(lambda: len(member.read().values) == 5)

    member.inputs.start({case.commands: 3})

    case.cluster.until(lambda: len(member.read().values) == 7)
    assert [value[2] for value in member.values] == [0, 1, 2, 3, 4, 3, 4]


def test_what_was_fetched_before_a_new_start_is_not_read_after_it(case: Case) -> None:
    member = case.owner()
    case.cluster.write(case.commands, [b"%d" % number for number in range(5)])
    starts(case, member)
    case.cluster.until(lambda: member.read(max_records=1).values)
    case.cluster.wait(0.3)

    member.inputs.start({case.commands: 4})

    case.cluster.until(lambda: len(member.read().values) >= 2)
    assert [value[2] for value in member.values] == [0, 4]


def test_places_that_are_held_bring_nothing_until_they_are_started_again(case: Case) -> None:
    member = case.owner()
    starts(case, member)
    member.inputs.hold([case.commands])
    case.cluster.write(case.commands, [b"held"])
    case.cluster.write((case.topics.attempts, 0), [b"free"])
    case.cluster.until(lambda: member.read().values)
    for _ in range(10):
        member.read()
    assert [value[3] for value in member.values] == [b"free"]

    member.inputs.start({case.commands: 0})

    case.cluster.until(lambda: len(member.read().values) == 2)


def test_a_start_behind_the_end_is_refused_loudly(case: Case) -> None:
    member = case.owner()
    case.cluster.write(case.commands, [b"one"])
    member.inputs.start({case.commands: 5})

    with pytest.raises(OffsetOutOfRangeError):
        case.cluster.until(lambda: not member.read().told)


def test_a_start_before_what_is_still_there_is_refused_loudly(case: Case) -> None:
    member = case.owner()
    case.cluster.write(case.commands, [b"one", b"two", b"three"])
    case.cluster.delete_before(case.commands, 2)
    member.inputs.start({case.commands: 0})

    with pytest.raises(OffsetOutOfRangeError):
        case.cluster.until(lambda: not member.read().told)


def test_the_beginning_is_the_first_record_that_is_still_there(case: Case) -> None:
    case.cluster.write(case.commands, [b"one", b"two", b"three"])
    case.cluster.delete_before(case.commands, 2)

    assert case.answer(lambda: case.admin.beginnings([case.commands])) == {case.commands: 2}


def test_an_end_is_met_once_and_again_when_there_was_more(case: Case) -> None:
    member = case.owner()
    case.cluster.write(case.commands, [b"one"])
    member.inputs.start({case.commands: 0})
    case.cluster.until(lambda: (case.commands, 1) in member.read().ends)
    for _ in range(40):
        member.read()

    case.cluster.write(case.commands, [b"two"])
    case.cluster.until(lambda: (case.commands, 2) in member.read().ends)

    assert [end for end in member.ends if end[0] == case.commands] == [(case.commands, 1), (case.commands, 2)]


def test_inputs_skip_what_was_aborted_and_meet_the_end_behind_it(case: Case) -> None:
    member, output = case.owner(), case.output()
    output.begin()
    case.put(output, b"aborted", place=case.commands)
    output.abort()
    case.transact(output, b"committed", place=case.commands)

    member.inputs.start({case.commands: 0})

    case.cluster.until(lambda: member.read().ends and member.ends[-1] == (case.commands, 4))
    assert [value[2:] for value in member.values] == [(2, b"committed")]


def test_no_more_is_read_at_once_than_was_asked_for_ends_included(case: Case) -> None:
    member = case.owner()
    case.cluster.write(case.commands, [b"%d" % number for number in range(10)])
    starts(case, member)
    case.cluster.wait(0.5)

    member.read(max_records=4, wait_ms=1_000)

    assert 1 <= len(member.values) + len(member.ends) <= 4
    assert [value[2] for value in member.values] == list(range(len(member.values)))


def test_a_topic_keeps_its_identity(case: Case) -> None:
    first = case.answer(lambda: case.admin.topic_id(case.topics.changelog))

    assert first
    assert case.answer(lambda: case.admin.topic_id(case.topics.changelog)) == first
    assert case.answer(lambda: case.admin.topic_id(case.topics.commands)) != first


def test_committed_offsets_outlive_the_members_that_committed_them(case: Case) -> None:
    member = case.owner()
    answer = member.inputs.claim({case.commands: Mark(offset=3)})
    case.cluster.until(lambda: member.read().told and answer.done())

    member.close()

    found = case.answer(lambda: case.admin.committed([case.commands], stable=True))
    mark = found[case.commands]
    assert mark is not None
    assert mark.offset == 3
