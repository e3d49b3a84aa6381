"""Hypothesis strategies for the records of the language: whatever a schema can hold, and what the limits allow."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mainspring.schemas import JobSpec, Priority, Record, SubmitJob, bounds
from mainspring.schemas.avro_types import AvroType, inlined, newest
from mainspring.schemas.records import ENUMS, RECORDS, class_of

__all__ = ["any_record", "ids", "records", "specs", "submits"]

_INTS = st.one_of(
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.sampled_from([-(1 << 31), -65, -64, -1, 0, 63, 64, 8191, 8192, (1 << 31) - 1]),
)
_LONGS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(0, 1 << 42),
    st.sampled_from([-(1 << 63), -1, 0, 63, 64, 1023, 1024, 1 << 41, (1 << 63) - 1]),
)
_PRIMITIVES: dict[str, SearchStrategy[Any]] = {
    "int": _INTS,
    "long": _LONGS,
    "boolean": st.booleans(),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=200),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
}


def records(kind: type[Any]) -> SearchStrategy[Any]:
    """Records of one class with any value that its schema can hold (but NaN, which equals nothing), sensible or not."""
    return _values(inlined(newest()[kind.__name__].schema))


def any_record() -> SearchStrategy[Record]:
    """Records of every class."""
    return st.sampled_from(sorted(RECORDS.values(), key=lambda kind: kind.__name__)).flatmap(records)


def _values(kind: AvroType) -> SearchStrategy[Any]:
    if isinstance(kind, str):
        return _PRIMITIVES[kind]
    if isinstance(kind, list):
        return st.none() | _values(kind[1]) if kind[0] == "null" else st.one_of(*map(_values, kind))
    if kind["type"] == "array":
        return st.lists(_values(kind["items"]), max_size=5).map(tuple)
    if kind["type"] == "enum":
        return st.sampled_from(list(ENUMS[kind["name"]]))
    return st.builds(class_of(kind["name"]), **{field["name"]: _values(field["type"]) for field in kind["fields"]})


def ids() -> SearchStrategy[str]:
    """Ids that are allowed: 1 to 255 printable characters without `@`."""
    return st.text(_PRINTABLE.filter(lambda char: char != "@"), min_size=1, max_size=bounds.ID_MAX_CHARS)


_PRINTABLE = st.characters(exclude_categories=["C", "Z"]).filter(str.isprintable)


def specs() -> SearchStrategy[JobSpec]:
    """Specifications that every check lets pass."""
    start: SearchStrategy[dict[str, int]] = st.fixed_dictionaries({}) | st.fixed_dictionaries(
        {"run_at_ms": _instants()}
    )
    start |= st.fixed_dictionaries({"delay_ms": st.integers(0, bounds.DELAY_MAX_MS)})
    rest = st.fixed_dictionaries(
        {
            "job_id": ids(),
            "name": st.text(_PRINTABLE, min_size=1, max_size=40),
            "queue": st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,20}[A-Za-z0-9])?", fullmatch=True),
            "priority": st.sampled_from(list(Priority)),
            "tenant": st.text(_PRINTABLE, max_size=20),
            "payload": st.binary(max_size=300),
            "timeout_ms": st.none() | st.integers(1, bounds.TIMEOUT_MAX_MS),
            "max_retries": st.integers(0, bounds.RETRIES_MAX),
            "retry_base_delay_ms": st.integers(0, bounds.RETRY_DELAY_MAX_MS),
            "retry_max_delay_ms": st.integers(0, bounds.RETRY_DELAY_MAX_MS),
            "retry_jitter": st.booleans(),
            "max_lost": st.integers(0, bounds.RETRIES_MAX),
            "deadline_ms": st.none() | _instants(),
            "start_deadline_ms": st.none() | _instants(),
            "tags": st.lists(st.text(_PRINTABLE, min_size=1, max_size=20), max_size=bounds.TAGS_MAX, unique=True).map(
                tuple
            ),
            "retry_of": st.none() | ids(),
        }
    )
    return st.builds(lambda first, others: JobSpec(**first, **others), start, rest)


def _instants() -> SearchStrategy[int]:
    return st.integers(0, bounds.INSTANT_MAX_MS)


def submits() -> SearchStrategy[SubmitJob]:
    """Submits that every check lets pass."""
    return st.builds(
        SubmitJob, command_id=ids(), actor=ids(), reason=st.just(""), requested_at_ms=_instants(), spec=specs()
    )
