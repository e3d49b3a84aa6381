"""The compiled codec against an Avro library of other hands, and against everything that is not a record."""

import contextlib
import copy
import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.schemas import (
    AttemptClaimed,
    AttemptHeartbeat,
    Cause,
    CauseSource,
    Codec,
    DeadLetterReason,
    HeldAttempt,
    JobSpec,
    JobStarted,
    Priority,
    Record,
    SubmitJob,
    Txn,
    UnreadableRecordError,
    UnwritableRecordError,
)
from mainspring.schemas.native import IS_BUILT
from mainspring.schemas.records import EVENT_TYPES, RECORDS
from tests.support.avro import fastavro_body, fastavro_read, to_plain
from tests.support.strategies import any_record, records, specs

CODEC = Codec.embedded()
# What was built in C with the package, where it was, and what stands in for it elsewhere.
CODECS = [CODEC, Codec.embedded(in_c=False)] if IS_BUILT else [CODEC]
both = pytest.mark.parametrize("codec", CODECS, ids=["as installed", "in Python"][: len(CODECS)])
KINDS = sorted(RECORDS.values(), key=lambda kind: kind.__name__)

CLAIM = AttemptClaimed(
    job_id="job-1", attempt=1, worker_id="w", incarnation="i", reported_at_ms=1_796_047_454_123, free_slot=True
)
SUBMIT = SubmitJob(
    command_id="c",
    actor="me",
    requested_at_ms=1_796_047_454_123,
    spec=JobSpec(job_id="job-1", name="mail", tags=("a", "b")),
)


@both
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_record_is_encoded_byte_for_byte_as_fastavro_does_and_comes_back_equal(
    codec: Codec, kind: type[Any], data: st.DataObject
) -> None:
    record = data.draw(records(kind))

    encoded = codec.encode(record)

    assert encoded[5:] == fastavro_body(record)
    decoded = codec.decode(encoded)
    assert decoded == record
    assert type(decoded) is kind
    assert to_plain(decoded) == fastavro_read(kind.__name__, encoded[5:])


@both
@given(record=any_record())
@settings(deadline=None)
def test_the_header_is_a_zero_byte_and_the_id_of_the_lock(codec: Codec, record: Record) -> None:
    from mainspring.schemas.lock import locked_schemas

    header = codec.encode(record)[:5]

    assert header[0] == 0
    assert locked_schemas()[int.from_bytes(header[1:], "big")].record == type(record).__name__


@both
@given(data=st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_random_bytes_are_unreadable_and_nothing_worse(codec: Codec, data: bytes) -> None:
    _decode_or_refuse(codec, data)


@both
@given(schema_id=st.integers(0, 40), body=st.binary(max_size=400))
@settings(max_examples=600, deadline=None)
def test_random_bytes_behind_a_right_header_are_a_record_or_unreadable(
    codec: Codec, schema_id: int, body: bytes
) -> None:
    _decode_or_refuse(codec, b"\x00" + schema_id.to_bytes(4, "big") + body)


@both
@given(record=any_record(), data=st.data())
@settings(max_examples=600, deadline=None)
def test_a_damaged_record_is_a_record_or_unreadable(codec: Codec, record: Record, data: st.DataObject) -> None:
    damaged = bytearray(codec.encode(record))
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(damaged)))
        length = data.draw(st.integers(0, 3))
        damaged[where : where + length] = data.draw(st.binary(max_size=12))

    _decode_or_refuse(codec, bytes(damaged))


@both
@given(record=any_record(), data=st.data())
@settings(max_examples=200, deadline=None)
def test_every_cut_record_and_every_record_with_more_behind_it_is_unreadable(
    codec: Codec, record: Record, data: st.DataObject
) -> None:
    encoded = codec.encode(record)
    cut = data.draw(st.integers(0, len(encoded) - 1))

    for broken in (encoded[:cut], encoded + b"\x00"):
        with pytest.raises(UnreadableRecordError) as refused:
            codec.decode(broken)
        assert refused.value.reason is DeadLetterReason.UNDECODABLE


def _decode_or_refuse(codec: Codec, data: bytes) -> None:
    """Any other exception fails the test by itself."""
    with contextlib.suppress(UnreadableRecordError):
        assert type(codec.decode(data)) in RECORDS.values()


CLAIM_HEADER = CODEC.encode(CLAIM)[:5]
HEARTBEAT_HEADER = CODEC.encode(AttemptHeartbeat(worker_id="", incarnation="", reported_at_ms=0, attempts=()))[:5]


@both
@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"", "missing", id="nothing at all"),
        pytest.param(
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"x" * 9, "missing", id="a string that claims 8 EiB"
        ),
        pytest.param(b"\x03abc", "length of -2", id="a string of negative length"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than ten bytes", id="an endless integer"),
        pytest.param(b"\x02\xff" + b"\x00" * 8, "utf-8", id="a string that is not UTF-8"),
        pytest.param(b"\x06\xed\xa0\x80" + b"\x00" * 8, "utf-8", id="a lone surrogate"),
        pytest.param(b"\x02a\xfe\xff\xff\xff\xff\x01\x02w\x02i\x00\x01", "32 bits", id="an int of 40 bits"),
        pytest.param(b"\x02a\x02\x02w\x02i\x00\x02", "boolean", id="a boolean of 2"),
    ],
)
def test_bytes_that_break_a_rule_of_avro_are_named(codec: Codec, body: bytes, says: str) -> None:
    with pytest.raises(UnreadableRecordError, match=says):
        codec.decode(CLAIM_HEADER + body)


@both
@pytest.mark.parametrize(
    "count", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02"]
)
def test_an_array_that_claims_more_items_than_there_are_bytes_is_refused_at_once(codec: Codec, count: bytes) -> None:
    with pytest.raises(UnreadableRecordError):
        codec.decode(HEARTBEAT_HEADER + b"\x00\x00\x00" + count + b"\x02a\x02\x00\x00" * 3)


@both
def test_an_array_in_several_blocks_with_sizes_is_read_as_avro_has_it(codec: Codec) -> None:
    # given one block with its size in bytes (a negative count), and one without
    item = b"\x02a\x02\x00\x00"
    body = b"\x00\x00\x00" + b"\x01" + bytes([len(item) * 2]) + item + b"\x04" + item * 2 + b"\x00"

    decoded = codec.decode(HEARTBEAT_HEADER + body)

    assert isinstance(decoded, AttemptHeartbeat)
    assert decoded.attempts == (HeldAttempt(job_id="a", attempt=1),) * 3


@both
def test_a_schema_id_that_nobody_knows_is_an_unknown_type(codec: Codec) -> None:
    with pytest.raises(UnreadableRecordError, match="999999") as refused:
        codec.decode(b"\x00" + (999_999).to_bytes(4, "big") + b"whatever")

    assert refused.value.reason is DeadLetterReason.UNKNOWN_TYPE


@both
@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"attempt": 1.5}, "AttemptClaimed.attempt", "expected int, got 1.5"),
        ({"attempt": 1.0}, "AttemptClaimed.attempt", "expected int, got 1.0"),
        ({"attempt": True}, "AttemptClaimed.attempt", "expected int, got True"),
        ({"attempt": 1 << 31}, "AttemptClaimed.attempt", "does not fit in 32 bits"),
        ({"reported_at_ms": 1 << 63}, "AttemptClaimed.reported_at_ms", "does not fit in 64 bits"),
        ({"reported_at_ms": -(1 << 63) - 1}, "AttemptClaimed.reported_at_ms", "does not fit in 64 bits"),
        ({"reported_at_ms": None}, "AttemptClaimed.reported_at_ms", "expected int, got None"),
        ({"reported_at_ms": 1e3}, "AttemptClaimed.reported_at_ms", "expected int, got 1000.0"),
        ({"free_slot": 1}, "AttemptClaimed.free_slot", "expected bool, got 1"),
        ({"job_id": b"job"}, "AttemptClaimed.job_id", "expected str, got b'job'"),
        ({"job_id": None}, "AttemptClaimed.job_id", "expected str, got None"),
        ({"job_id": "a\ud800"}, "AttemptClaimed.job_id", "character 1 is a lone surrogate"),
    ],
)
def test_a_value_that_the_schema_cannot_hold_is_refused_by_the_name_of_its_field(
    codec: Codec, change: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(UnwritableRecordError, match=says) as refused:
        codec.encode(replace(CLAIM, **change))

    assert refused.value.field == field


@both
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"priority": 2}, "SubmitJob.spec.priority"),
        ({"payload": "text"}, "SubmitJob.spec.payload"),
        ({"payload": bytearray(b"x")}, "SubmitJob.spec.payload"),
        ({"tags": ["a"]}, "SubmitJob.spec.tags"),
        ({"tags": ("a", 7)}, "SubmitJob.spec.tags[1]"),
        ({"run_at_ms": float("nan")}, "SubmitJob.spec.run_at_ms"),
        ({"delay_ms": float("inf")}, "SubmitJob.spec.delay_ms"),
    ],
)
def test_the_path_to_a_wrong_value_inside_a_part_is_told(codec: Codec, change: dict[str, Any], field: str) -> None:
    with pytest.raises(UnwritableRecordError) as refused:
        codec.encode(replace(SUBMIT, spec=replace(SUBMIT.spec, **change)))

    assert refused.value.field == field


@both
@pytest.mark.parametrize("thing", [None, 7, "text", Txn(id=1, index=0, size=1), object()])
def test_what_is_no_record_of_the_language_is_refused(codec: Codec, thing: Any) -> None:
    with pytest.raises(UnwritableRecordError, match="not a record of the language"):
        codec.encode(thing)


def _started() -> JobStarted:
    cause = Cause(source=CauseSource.ATTEMPTS, partition=3, offset=77)
    return JobStarted(
        job_id="j",
        revision=2,
        decided_at_ms=5,
        cause=cause,
        attempt=1,
        worker_id="w",
        incarnation="i",
        due_at_ms=4,
        txn=Txn(id=0, index=0, size=0),
    )


@both
def test_a_transaction_position_given_to_encode_takes_the_place_of_the_events_own(codec: Codec) -> None:
    txn = Txn(id=9, index=1, size=2)

    decoded = codec.decode(codec.encode(_started(), txn))

    assert decoded == replace(_started(), txn=txn)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in EVENT_TYPES], ids=lambda kind: kind.__name__)
def test_every_event_ends_with_its_transaction_position(kind: type[Any]) -> None:
    assert dataclasses.fields(kind)[-1].name == "txn"


@both
@given(spec=specs())
@settings(max_examples=50, deadline=None)
def test_a_specification_is_encoded_once_in_its_life(codec: Codec, spec: JobSpec) -> None:
    # given a submit as the scheduler reads it
    submit = codec.decode(codec.encode(SubmitJob(command_id="c", actor="a", requested_at_ms=1, spec=spec)))
    assert isinstance(submit, SubmitJob)

    # when its specification is written as a row of its own
    row = codec.encode(submit.spec)

    # then the row holds the very bytes that came in
    assert submit.spec._encoded == row[5:]
    assert codec.decode(row) == spec


@both
def test_bytes_remembered_by_a_specification_are_carried_over_even_where_avro_allows_others(codec: Codec) -> None:
    # given a specification whose tags came in two blocks, as another Avro library may write them
    canonical = codec.encode(SUBMIT.spec)
    blocks = canonical.replace(b"\x04\x02a\x02b\x00", b"\x02\x02a\x02\x02b\x00")
    assert len(blocks) == len(canonical) + 1

    spec = codec.decode(blocks)

    assert spec == SUBMIT.spec
    assert isinstance(spec, JobSpec)
    assert codec.encode(spec) == blocks


@both
def test_a_changed_copy_of_a_specification_forgets_the_bytes(codec: Codec) -> None:
    spec = codec.decode(codec.encode(SUBMIT.spec))
    assert isinstance(spec, JobSpec)

    changed = replace(spec, priority=Priority.CRITICAL)

    assert codec.decode(codec.encode(changed)) == changed


@both
def test_remembered_bytes_take_no_part_in_equality_hash_and_copies(codec: Codec) -> None:
    fresh = JobSpec(job_id="job-1", name="mail", tags=("a", "b"))
    decoded = codec.decode(codec.encode(SUBMIT.spec))

    copied = copy.copy(decoded)

    assert decoded == fresh == copied
    assert hash(decoded) == hash(fresh)
    assert repr(decoded) == repr(fresh)
    assert not hasattr(copied, "_encoded")


def test_errors_survive_copying_with_their_fields() -> None:
    unreadable = copy.copy(UnreadableRecordError(DeadLetterReason.UNDECODABLE, "why"))
    unwritable = copy.copy(UnwritableRecordError("a.b", "why"))

    assert (unreadable.reason, unreadable.detail) == (DeadLetterReason.UNDECODABLE, "why")
    assert (unwritable.field, unwritable.why) == ("a.b", "why")
