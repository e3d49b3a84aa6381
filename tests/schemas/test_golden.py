"""Bytes that were written once are read for ever."""

import json

import pytest

from mainspring.schemas import Codec
from mainspring.schemas.avro_types import SchemaFile, newest, schema_files
from mainspring.schemas.lock import locked
from tests.support.avro import fastavro_read
from tests.support.golden import GOLDEN, body_of, golden_path, values_of

CODEC = Codec.embedded()


@pytest.mark.parametrize("file", schema_files(), ids=lambda file: file.path)
def test_golden_bytes_of_every_released_version_still_decode_to_their_values(file: SchemaFile) -> None:
    golden = json.loads(golden_path(file).read_text(encoding="utf-8"))
    header = b"\x00" + locked()[file.path].id.to_bytes(4, "big")

    record = CODEC.decode(header + body_of(golden))

    read = values_of(record)
    assert {name: read[name] for name in golden["values"] if name in read} == golden["values"]


@pytest.mark.parametrize("file", newest().values(), ids=lambda file: file.path)
def test_the_newest_version_is_still_written_byte_for_byte_as_its_golden_bytes(file: SchemaFile) -> None:
    golden = json.loads(golden_path(file).read_text(encoding="utf-8"))
    body = body_of(golden)
    header = b"\x00" + locked()[file.path].id.to_bytes(4, "big")

    assert CODEC.encode(CODEC.decode(header + body)) == header + body
    assert fastavro_read(file.record, body) is not None


def test_there_is_no_golden_file_without_a_schema() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {golden_path(file).name for file in schema_files()}
