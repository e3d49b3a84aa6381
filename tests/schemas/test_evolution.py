"""Schemas change, logs stay: what a new version may do, and what old and new readers make of each other's records."""

import copy
import io
import json
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import avro.schema
import fastavro
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from hypothesis import given, settings

from mainspring.schemas import (
    AttemptFailed,
    AttemptHeartbeat,
    CancelJob,
    Codec,
    DeadLetterReason,
    JobSpec,
    JobSubmitted,
    Priority,
    SubmitJob,
    UnreadableRecordError,
)
from mainspring.schemas.avro_types import SchemaFile, newest, schema_files
from mainspring.schemas.codec import LockedIds
from mainspring.schemas.resolving import resolving_decoder
from tests.support.avro import fastavro_body, to_plain
from tests.support.strategies import records

NEWER_ID = 4711
V1 = newest()["CancelJob"].schema
CANCEL = CancelJob(job_id="job-1", command_id="c", actor="me", reason="why", requested_at_ms=5)


def incompatibilities(versions: list[dict[str, Any]]) -> list[str]:
    """What keeps any version from reading any other (FULL_TRANSITIVE); nothing: the new one may be released."""
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]  # the library has half its types
    found = []
    for reader, writer in permutations(versions, 2):
        result = checker.get_compatibility(avro.schema.parse(json.dumps(reader)), avro.schema.parse(json.dumps(writer)))
        if result.compatibility is not SchemaCompatibilityType.compatible:
            found += sorted(result.messages)
    return found


def changed(schema: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A copy of a record schema whose fields of these names are replaced, or dropped for None."""
    new = copy.deepcopy(schema)
    new["fields"] = [
        fields.get(field["name"], field) for field in new["fields"] if fields.get(field["name"], field) is not None
    ]
    return new


def extended(schema: dict[str, Any], *fields: dict[str, Any]) -> dict[str, Any]:
    """A copy of a record schema with more fields at its end."""
    new = copy.deepcopy(schema)
    new["fields"] += fields
    return new


class NewerIds(LockedIds):
    """The lock of a newer release: one more schema under an id of its own."""

    def __init__(self, newer: dict[str, Any]) -> None:
        super().__init__()
        self._newer = newer

    def schema_of(self, schema_id: int) -> dict[str, Any] | None:
        return self._newer if schema_id == NEWER_ID else super().schema_of(schema_id)


def written_with(schema: dict[str, Any], values: dict[str, Any]) -> bytes:
    """A record as a newer producer would write it."""
    stream = io.BytesIO(b"\x00" + NEWER_ID.to_bytes(4, "big"))
    stream.seek(5)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(copy.deepcopy(schema)), values)
    return stream.getvalue()


@pytest.mark.parametrize("record", sorted(newest()))
def test_all_released_versions_of_a_record_read_each_other(record: str) -> None:
    versions = [file.schema for file in schema_files() if file.record == record]

    assert incompatibilities(versions) == []


def test_versions_of_a_record_are_numbered_from_one_without_a_gap() -> None:
    for older, newer in pairwise(schema_files()):
        expected = older.version + 1 if older.record == newer.record else 1
        assert newer.version == expected, newer.path
    assert schema_files()[0].version == 1


def test_the_gate_lets_a_new_field_with_a_default_pass() -> None:
    v2 = extended(V1, {"name": "ticket", "type": ["null", "string"], "default": None})

    assert incompatibilities([V1, v2]) == []


@pytest.mark.parametrize(
    "v2",
    [
        pytest.param(extended(V1, {"name": "ticket", "type": "string"}), id="a new field without a default"),
        pytest.param(changed(V1, actor=None), id="a field dropped that has no default"),
        pytest.param(changed(V1, requested_at_ms={"name": "requested_at_ms", "type": "string"}), id="another type"),
        pytest.param(changed(V1, requested_at_ms={"name": "requested_at_ms", "type": "int"}), id="a narrower type"),
        pytest.param(changed(V1, requested_at_ms={"name": "requested_at_ms", "type": "double"}), id="a wider type"),
        pytest.param(changed(V1, actor={"name": "who", "type": "string"}), id="another name"),
        pytest.param({**V1, "name": "StopJob"}, id="another record name"),
    ],
)
def test_the_gate_refuses_what_some_reader_could_not_read(v2: dict[str, Any]) -> None:
    assert incompatibilities([V1, v2]) != []


def test_a_record_of_a_newer_version_is_read_and_its_new_fields_are_skipped() -> None:
    v2 = extended(V1, {"name": "ticket", "type": "string", "default": ""}, {"name": "n", "type": "long", "default": 0})
    codec = Codec(NewerIds(v2))

    assert codec.decode(written_with(v2, {**to_plain(CANCEL), "ticket": "T-1", "n": 7})) == CANCEL


def test_a_record_of_an_older_version_gets_the_defaults_of_the_fields_it_lacks() -> None:
    v0 = changed(V1, reason=None)
    codec = Codec(NewerIds(v0))
    values = to_plain(CANCEL)
    del values["reason"]

    assert codec.decode(written_with(v0, values)) == replace(CANCEL, reason="")


def test_every_kind_of_default_is_filled_in_as_its_class_has_it() -> None:
    # given an older release whose specification had nothing but what is required
    v0 = copy.deepcopy(newest()["JobSpec"].schema)
    v0["fields"] = [field for field in v0["fields"] if "default" not in field]
    codec = Codec(NewerIds(v0))

    assert codec.decode(written_with(v0, {"job_id": "j", "name": "n"})) == JobSpec(job_id="j", name="n")


def test_an_enum_symbol_of_a_newer_version_becomes_the_enums_default() -> None:
    # given a newer release that knows a priority above all others
    v2 = copy.deepcopy(newest()["SubmitJob"].schema)
    spec = next(field for field in v2["fields"] if field["name"] == "spec")["type"]
    priority = next(field for field in spec["fields"] if field["name"] == "priority")["type"]
    priority["symbols"] = [*priority["symbols"], "BLAZING"]
    codec = Codec(NewerIds(v2))
    values = {
        "command_id": "c",
        "actor": "a",
        "requested_at_ms": 1,
        "spec": {"job_id": "j", "name": "n", "priority": "BLAZING", "payload": b""},
    }

    decoded = codec.decode(written_with(v2, values))

    assert isinstance(decoded, SubmitJob)
    assert decoded.spec.priority is Priority.MEDIUM
    # and its bytes, which are of the newer version, are not carried over as ours
    assert codec.decode(codec.encode(decoded)) == decoded


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + b"\x00", lambda data: data[:5]])
def test_a_broken_record_of_a_newer_version_is_unreadable(damage: Any) -> None:
    v2 = extended(V1, {"name": "ticket", "type": "string", "default": ""})
    codec = Codec(NewerIds(v2))

    with pytest.raises(UnreadableRecordError) as refused:
        codec.decode(damage(written_with(v2, {**to_plain(CANCEL), "ticket": "T-1"})))

    assert refused.value.reason is DeadLetterReason.UNDECODABLE


def test_a_schema_that_only_words_itself_differently_is_read_by_the_compiled_decoder() -> None:
    # given the same schema as some registries give it back: without documentation
    bare = copy.deepcopy(newest()["SubmitJob"].schema)
    bare["doc"] = "another text"
    del bare["fields"][4]["type"]["namespace"]
    codec = Codec(NewerIds(bare))
    values = {
        "command_id": "c",
        "actor": "a",
        "requested_at_ms": 1,
        "spec": {"job_id": "j", "name": "n", "payload": b""},
    }

    decoded = codec.decode(written_with(bare, values))

    # then the specification remembers its bytes, which resolution never does
    assert isinstance(decoded, SubmitJob)
    assert decoded.spec._encoded


def test_a_record_of_another_namespace_is_an_unknown_type() -> None:
    codec = Codec(NewerIds({**V1, "namespace": "com.example"}))

    with pytest.raises(UnreadableRecordError) as refused:
        codec.decode(written_with(V1, to_plain(CANCEL)))

    assert refused.value.reason is DeadLetterReason.UNKNOWN_TYPE


@pytest.mark.parametrize("kind", [AttemptFailed, AttemptHeartbeat, JobSubmitted, SubmitJob])
def test_resolution_and_the_compiled_decoder_agree_on_the_same_version(kind: type[Any]) -> None:
    file: SchemaFile = newest()[kind.__name__]
    resolve = resolving_decoder(file.schema, file.schema)

    @given(record=records(kind))
    @settings(max_examples=30, deadline=None)
    def agree(record: Any) -> None:
        assert resolve(b"\x00\x00\x00\x00\x01" + fastavro_body(record), 5) == record

    agree()
