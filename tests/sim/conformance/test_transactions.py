"""What a transaction does and shows, on the simulated cluster as on the real one."""

from functools import partial

import pytest

from mainspring.processors.engine.errors import FaultKind, TransactionError, UnstableOffsetsError
from mainspring.processors.engine.ports import Mark
from tests.sim.conformance.cluster import Case, Rows


def has_values(rows: Rows) -> bool:
    return bool(rows.read().values)


def test_committed_records_can_be_read_and_aborted_ones_cannot(case: Case) -> None:
    output, rows = case.output(), case.reader()

    output.begin()
    case.put(output, b"aborted")
    output.abort()
    case.transact(output, b"one", b"two")

    case.cluster.until(lambda: len(rows.read().values) == 2)
    assert rows.values == [b"one", b"two"]


def test_the_control_record_at_the_end_of_a_transaction_takes_an_offset(case: Case) -> None:
    output = case.output()

    case.transact(output, b"one", b"two")
    case.cluster.until(lambda: case.end(case.changelog) == 3, "the marker")
    output.begin()
    case.put(output, b"aborted")
    output.abort()

    case.cluster.until(lambda: case.end(case.changelog) == 5, "the marker")


def test_the_end_counts_records_of_open_transactions(case: Case) -> None:
    output = case.output()

    output.begin()
    case.put(output, b"one", b"two")

    assert case.end(case.changelog) == 2
    output.abort()


def test_a_reader_of_committed_records_waits_before_an_open_transaction_whoever_has_committed_behind_it(
    case: Case,
) -> None:
    first, second, rows = case.output("first"), case.output("second"), case.reader()
    case.transact(second, b"before")
    case.cluster.until(lambda: rows.read().values == [b"before"])

    first.begin()
    case.put(first, b"open")
    case.transact(second, b"behind")
    for _ in range(10):
        rows.read()
    assert rows.values == [b"before"]

    first.commit()
    case.cluster.until(lambda: len(rows.read().values) == 3)
    assert rows.values == [b"before", b"open", b"behind"]


def test_the_end_that_a_reader_of_committed_records_meets_is_the_first_record_of_an_open_transaction(
    case: Case,
) -> None:
    first, second = case.output("first"), case.output("second")
    case.transact(second, b"before")
    case.cluster.until(lambda: case.end(case.changelog) == 2, "the marker")
    first.begin()
    case.put(first, b"open")
    case.transact(second, b"behind")

    rows = case.reader()
    case.cluster.until(lambda: rows.read().ends)

    assert (rows.ends, case.end(case.changelog) > 2) == ([2], True)
    first.commit()
    case.cluster.until(lambda: rows.read().ends[-1] == case.end(case.changelog), "the real end")


def test_the_end_behind_an_aborted_transaction_is_met(case: Case) -> None:
    output = case.output()
    case.transact(output, b"one")
    output.begin()
    case.put(output, b"aborted")
    output.abort()

    rows = case.reader()
    case.cluster.until(lambda: rows.read().ends and rows.ends[-1] == 4)

    assert rows.values == [b"one"]


def test_the_offset_of_a_noted_record_is_told_after_the_flush(case: Case) -> None:
    output = case.output()
    case.transact(output, b"one")

    output.begin()
    output.produce(*case.changelog[:1], b"two", b"key", 0)
    output.produce_noted(case.changelog[0], b"three", b"key", 0)
    output.flush()

    assert output.noted == {case.changelog: 3}
    output.commit()


def test_a_second_producer_of_the_same_id_shuts_the_first_out_for_good(case: Case) -> None:
    first = case.output()
    case.transact(first, b"first")
    case.output()

    first.begin()
    with pytest.raises(TransactionError) as refused:
        case.transact_rest(first, b"zombie")

    assert refused.value.kind is FaultKind.FENCED
    with pytest.raises(TransactionError) as again:
        first.begin()
    assert again.value.kind is FaultKind.FENCED


def test_a_second_producer_of_the_same_id_ends_what_the_first_left_open(case: Case) -> None:
    first, rows = case.output(), case.reader()
    first.begin()
    case.put(first, b"left open")

    second = case.output()
    case.transact(second, b"second")

    case.cluster.until(lambda: rows.read().values)
    assert rows.values == [b"second"]
    with pytest.raises(TransactionError) as refused:
        first.commit()
    assert refused.value.kind is FaultKind.FENCED


def test_fencing_an_id_lets_readers_pass_what_it_left_open(case: Case) -> None:
    dead, other, rows = case.output("dead"), case.output("other"), case.reader()
    dead.begin()
    case.put(dead, b"left open")
    case.transact(other, b"behind")
    for _ in range(5):
        rows.read()
    assert rows.values == []

    case.cluster.kafka().fence(dead.transactional_id)

    case.cluster.until(lambda: rows.read().values == [b"behind"])


def test_a_transaction_that_takes_too_long_is_aborted_by_the_broker_and_its_producer_shut_out(case: Case) -> None:
    slow, rows = case.output("slow", transaction_timeout_ms=1_000), case.reader()
    slow.begin()
    case.put(slow, b"too late")
    case.cluster.until(lambda: rows.read().ends and rows.ends[-1] == 2, "the marker of the broker")

    with pytest.raises(TransactionError) as refused:
        slow.commit()

    assert refused.value.kind is FaultKind.FENCED
    assert rows.values == []


def test_an_aborted_transaction_can_be_followed_by_another(case: Case) -> None:
    output, rows = case.output(), case.reader()
    for value in (b"one", b"two", b"three"):
        output.begin()
        case.put(output, b"not " + value)
        output.abort()
        case.transact(output, value)

    case.cluster.until(lambda: len(rows.read().values) == 3)
    assert rows.values == [b"one", b"two", b"three"]


def test_a_transaction_with_nothing_in_it_is_no_transaction(case: Case) -> None:
    output = case.output()

    output.begin()
    output.flush()
    output.commit()

    assert case.end(case.changelog) == 0


def test_a_transaction_can_write_to_many_partitions_and_all_of_it_shows(case: Case) -> None:
    output, readers = case.output(), [case.reader(partition=0), case.reader(partition=1)]

    output.begin()
    for partition in (0, 1):
        output.produce(case.topics.changelog, b"%d" % partition, b"key", partition)
    output.flush()
    output.commit()

    for partition, rows in enumerate(readers):
        case.cluster.until(partial(has_values, rows))
        assert rows.values == [b"%d" % partition]


def test_records_of_one_partition_keep_the_order_in_which_they_were_produced(case: Case) -> None:
    output, rows = case.output(), case.reader()
    values = [b"%d" % number for number in range(200)]

    case.transact(output, *values)

    case.cluster.until(lambda: len(rows.read().values) == 200)
    assert rows.values == values


def test_offsets_in_a_transaction_hold_once_it_is_committed_and_carry_their_note(case: Case) -> None:
    member, output = case.owner(), case.output()
    output.begin()
    case.put(output, b"row")
    output.send_offsets({case.commands: Mark(offset=7, metadata="me")}, member.inputs.group())
    output.commit()

    def committed() -> bool:
        found = case.answer(lambda: case.admin.committed([case.commands], stable=False))[case.commands]
        return bool(found == Mark(offset=7, metadata="me"))

    case.cluster.until(committed)


def test_offsets_in_an_aborted_transaction_never_hold(case: Case) -> None:
    member, output = case.owner(), case.output()
    output.begin()
    case.put(output, b"row")
    output.send_offsets({case.commands: Mark(offset=7)}, member.inputs.group())
    output.abort()
    case.transact(output, b"another")

    assert case.answer(lambda: case.admin.committed([case.commands], stable=False))[case.commands] is None


def test_offsets_of_an_open_transaction_make_the_committed_ones_unstable(case: Case) -> None:
    member, output = case.owner(), case.output()
    output.begin()
    case.put(output, b"row")
    output.send_offsets({case.commands: Mark(offset=7)}, member.inputs.group())

    with pytest.raises(UnstableOffsetsError):
        case.answer(lambda: case.admin.committed([case.commands], stable=True))
    other = (case.topics.commands, 1)
    assert case.answer(lambda: case.admin.committed([other], stable=True)) == {other: None}
    assert case.answer(lambda: case.admin.committed([case.commands], stable=False)) == {case.commands: None}

    output.commit()

    def stable() -> bool:
        try:
            return bool(case.answer(lambda: case.admin.committed([case.commands], stable=True))[case.commands])
        except UnstableOffsetsError:
            return False

    case.cluster.until(stable)


def test_the_offsets_of_an_evicted_member_are_refused_and_its_producer_may_go_on(case: Case) -> None:
    member, output = case.owner(), case.output()
    case.cluster.evict_all()

    output.begin()
    case.put(output, b"zombie")
    with pytest.raises(TransactionError) as refused:
        output.send_offsets({case.commands: Mark(offset=7)}, member.inputs.group())
    assert (refused.value.kind, refused.value.code) == (FaultKind.ABORT, "UNKNOWN_MEMBER_ID")
    with pytest.raises(TransactionError) as not_committed:
        output.commit()
    assert not_committed.value.kind is FaultKind.ABORT
    output.abort()

    case.transact(output, b"alive")
    rows = case.reader()
    case.cluster.until(lambda: rows.read().values)
    assert rows.values == [b"alive"]


def test_the_offsets_of_a_member_of_an_earlier_generation_are_refused(case: Case) -> None:
    member, output = case.owner(), case.output()
    stale = member.inputs.group()
    other = case.member()
    case.share(member, other)

    output.begin()
    case.put(output, b"row")
    with pytest.raises(TransactionError) as refused:
        output.send_offsets({case.commands: Mark(offset=7)}, stale)
    assert (refused.value.kind, refused.value.code) == (FaultKind.ABORT, "ILLEGAL_GENERATION")
    output.abort()

    output.begin()
    case.put(output, b"row")
    output.send_offsets({case.commands: Mark(offset=7)}, member.inputs.group())
    output.commit()


def test_the_broker_does_not_ask_whether_a_member_owns_what_it_commits(case: Case) -> None:
    first, second, output = case.owner(), case.member(), case.output()
    case.share(first, second)
    (foreign,) = second.owned

    output.begin()
    case.put(output, b"row")
    output.send_offsets({(case.topics.commands, foreign): Mark(offset=7)}, first.inputs.group())
    output.commit()


def test_a_member_that_lost_everything_cannot_commit_with_the_proof_that_it_has_left(case: Case) -> None:
    member, output = case.owner(), case.output()
    case.cluster.evict_all()
    heir = case.member()
    case.cluster.until(lambda: len(heir.read().owned) == 2, "the heir having everything")
    # By now the client library of the evicted member knows; the application is told only when it reads.
    case.cluster.wait(1.5)

    output.begin()
    case.put(output, b"zombie")
    with pytest.raises(TransactionError) as refused:
        output.send_offsets({case.commands: Mark(offset=7)}, member.inputs.group())

    assert (refused.value.kind, refused.value.code) == (FaultKind.ABORT, "UNKNOWN_MEMBER_ID")
    output.abort()
