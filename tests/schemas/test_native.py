"""The codec in C beside the one in Python: the same bytes, the same records, the same errors, and no memory kept."""

import copy
import gc
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.schemas import Codec, Record, Txn, UnreadableRecordError, UnwritableRecordError
from mainspring.schemas.avro_types import newest
from mainspring.schemas.lock import locked
from mainspring.schemas.native import IS_BUILT
from mainspring.schemas.records import RECORDS
from tests.support.golden import body_of, golden_path
from tests.support.strategies import any_record, records

if not IS_BUILT:
    pytest.skip(
        "the codec in C was not built: `make venv` builds it where there is a C compiler", allow_module_level=True
    )

IN_C = Codec.embedded()
IN_PYTHON = Codec.embedded(in_c=False)
KINDS = sorted(RECORDS.values(), key=lambda kind: kind.__name__)


def _decoded(codec: Codec, data: bytes) -> Record | str:
    try:
        return codec.decode(data)
    except UnreadableRecordError as error:
        return f"refused: {error.reason}"


def _encoded(codec: Codec, record: Record, txn: Txn | None = None) -> bytes | tuple[str, str]:
    try:
        return codec.encode(record, txn)
    except UnwritableRecordError as error:
        return error.field, error.why


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_both_write_the_same_bytes_and_read_the_same_record(kind: type[Any], data: st.DataObject) -> None:
    record = data.draw(records(kind))
    txn = data.draw(st.none() | st.builds(Txn, id=st.integers(0, 9), index=st.just(0), size=st.just(1)))

    # A copy for each, since a specification remembers the bytes that the first has made.
    in_c, in_python = IN_C.encode(copy.copy(record), txn), IN_PYTHON.encode(copy.copy(record), txn)

    assert in_c == in_python
    assert IN_C.decode(in_c) == IN_PYTHON.decode(in_c)


@given(record=any_record(), data=st.data())
@settings(max_examples=1_000, deadline=None)
def test_of_damaged_bytes_both_read_the_same_or_refuse_them(record: Record, data: st.DataObject) -> None:
    damaged = bytearray(IN_C.encode(record))
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(st.integers(5, len(damaged)))
        damaged[where : where + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=12))

    assert _decoded(IN_C, bytes(damaged)) == _decoded(IN_PYTHON, bytes(damaged))


WRONG = st.sampled_from(
    [
        None,
        True,
        1,
        -1,
        1.5,
        1 << 31,
        1 << 63,
        -(1 << 63) - 1,
        "text",
        "\ud800",
        b"bytes",
        (),
        ("a",),
        (7,),
        [],
        object(),
    ]
)


@given(record=any_record(), data=st.data())
@settings(max_examples=500, deadline=None)
def test_both_refuse_the_same_values_by_the_name_of_the_same_field(record: Record, data: st.DataObject) -> None:
    wrong = copy.copy(record)
    field = data.draw(st.sampled_from(sorted(type(record).__dataclass_fields__)))
    object.__setattr__(wrong, field, data.draw(WRONG))

    assert _encoded(IN_C, copy.copy(wrong)) == _encoded(IN_PYTHON, copy.copy(wrong))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_record_that_was_read_and_let_go_leaves_nothing(kind: type[Any]) -> None:
    # given a record, the same cut short, and one with a value that cannot be written
    record = _any(kind)
    whole = IN_C.encode(record)
    wrong = copy.copy(record)
    object.__setattr__(wrong, next(iter(kind.__dataclass_fields__)), object())

    def a_thousand_times() -> None:
        for _ in range(1_000):
            IN_C.decode(whole)
            IN_C.encode(copy.copy(record))
            _decoded(IN_C, whole[:-1])
            _encoded(IN_C, wrong)

    # when all of it is done again and again
    a_thousand_times()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        a_thousand_times()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    # then less is kept than a byte for each
    assert kept < 1_000


def _any(kind: type[Any]) -> Any:
    """The record whose golden bytes are kept."""
    file = newest()[kind.__name__]
    header = b"\x00" + locked()[file.path].id.to_bytes(4, "big")
    return IN_PYTHON.decode(header + body_of(json.loads(golden_path(file).read_text(encoding="utf-8"))))
