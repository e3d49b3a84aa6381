"""Records to bytes and back: Avro in Confluent wire format (a zero byte, a 4-byte schema id, the Avro body)."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Protocol

from mainspring.schemas.avro_types import NAMESPACE, SchemaFile, inlined, newest
from mainspring.schemas.codes import DeadLetterReason
from mainspring.schemas.common import Txn
from mainspring.schemas.compiled import READ_FAILURES, WRITE_FAILURES, Decode, Encode, compile_decoder, compile_encoder
from mainspring.schemas.diagnose import find_misfit
from mainspring.schemas.errors import UnreadableRecordError, UnwritableRecordError
from mainspring.schemas.lock import locked_schemas
from mainspring.schemas.native import IS_BUILT, native_codec
from mainspring.schemas.records import RECORDS, Record
from mainspring.schemas.registry import RegistryIds, Subject, registry_client

__all__ = ["Codec", "SchemaIds"]

HEADER_BYTES = 5


class SchemaIds(Protocol):
    """Where schema ids come from: the committed lock, or a registry."""

    def id_of(self, file: SchemaFile) -> int:
        """The id of one of our own schemas. Raises `RegistryError` when it has none."""
        ...

    def schema_of(self, schema_id: int) -> dict[str, Any] | None:
        """The schema that has an id; None if there is none. Raises `RegistryError` when that cannot be told."""
        ...


class LockedIds:
    """The ids of the lock file."""

    def __init__(self) -> None:
        self._schemas = locked_schemas()
        self._ids = {file.path: schema_id for schema_id, file in self._schemas.items()}

    def id_of(self, file: SchemaFile) -> int:
        return self._ids[file.path]

    def schema_of(self, schema_id: int) -> dict[str, Any] | None:
        file = self._schemas.get(schema_id)
        return None if file is None else file.schema


class Codec:
    """Encodes and decodes every record of the language. Safe to share between threads."""

    def __init__(self, ids: SchemaIds, *, in_c: bool = IS_BUILT) -> None:
        """`in_c`: by `mainspring.schemas.native`; the bytes are the same."""
        self._ids = ids
        self._part = _part_in_c if in_c else _part_in_python
        self._writers: dict[type[Any], tuple[Encode, bytes]] = {}
        self._readers: dict[bytes, Decode] = {}

    @classmethod
    def embedded(cls, *, in_c: bool = IS_BUILT) -> "Codec":
        """A codec with the ids of the lock file, which every installation of the same version shares."""
        return cls(LockedIds(), in_c=in_c)

    @classmethod
    def from_registry(cls, url: str, options: Mapping[str, Any], subjects: Iterable[Subject]) -> "Codec":
        """A codec with the ids of a schema registry; `subjects` are those of the topology.

        Raises `RegistryError` if the registry does not answer or lacks one of our schemas.
        """
        return cls(RegistryIds(registry_client(url, options), subjects))

    def encode(self, record: Record, txn: Txn | None = None) -> bytes:
        """Encodes a record. `txn` takes the place of an event's own `txn`; other records do not have one.

        Raises `UnwritableRecordError`, which names the field, for a value that the schema cannot hold: a wrong type (a
        float or a bool for an integer included), an integer of too many bits, a lone surrogate.
        """
        encode, header = self._writers.get(record.__class__) or self._learn_class(record)
        try:
            return encode(record, txn, header)
        except WRITE_FAILURES as error:
            name = type(record).__name__
            field, why = find_misfit(inlined(newest()[name].schema), record, name) or (name, repr(error))
            raise UnwritableRecordError(field, why) from error

    def decode(self, data: bytes) -> Record:
        """Decodes a record, whichever version of its schema it was written with.

        Raises `UnreadableRecordError` for bytes that are no record of the language, and nothing else; with a registry
        also `RegistryError` while an id that was never seen cannot be looked up.
        """
        decode = self._readers.get(data[:HEADER_BYTES]) or self._learn_header(data)
        try:
            record: Record = decode(data, HEADER_BYTES)
        except READ_FAILURES as error:
            detail = f"broken record of schema id {_schema_id(data)}: {_explain(error)}"
            raise UnreadableRecordError(DeadLetterReason.UNDECODABLE, detail) from error
        return record

    def _learn_class(self, record: Record) -> tuple[Encode, bytes]:
        name = type(record).__name__
        if RECORDS.get(name) is not type(record):
            raise UnwritableRecordError(name, "not a record of the language; mainspring.schemas lists them")
        writer = (self._part(name)[0], b"\x00" + self._ids.id_of(newest()[name]).to_bytes(4, "big"))
        self._writers[type(record)] = writer
        return writer

    def _learn_header(self, data: bytes) -> Decode:
        if len(data) < HEADER_BYTES or data[0] != 0:
            detail = f"{len(data)} bytes that do not begin with a zero byte and a 4-byte schema id"
            raise UnreadableRecordError(DeadLetterReason.UNDECODABLE, detail)
        schema_id = _schema_id(data)
        schema = self._ids.schema_of(schema_id)
        file = None if schema is None or schema.get("namespace") != NAMESPACE else newest().get(schema["name"])
        if schema is None or file is None:
            detail = (
                f"schema id {schema_id} is no record of this version; a newer producer, or another schema registry?"
            )
            raise UnreadableRecordError(DeadLetterReason.UNKNOWN_TYPE, detail)
        reader = self._part(file.record)[1] if _bare(schema) == _bare(file.schema) else _resolving(schema, file.schema)
        self._readers[data[:HEADER_BYTES]] = reader
        return reader


@cache
def _part_in_c(record: str) -> tuple[Encode, Decode]:
    codec = native_codec(newest()[record].schema)
    return codec.encode, codec.decode


@cache
def _part_in_python(record: str) -> tuple[Encode, Decode]:
    schema = newest()[record].schema
    return compile_encoder(schema), compile_decoder(schema)


def _resolving(writer: dict[str, Any], reader: dict[str, Any]) -> Decode:
    # Imported when needed, which is hardly ever: the library takes as long to import as all of the language.
    from mainspring.schemas.resolving import resolving_decoder

    return resolving_decoder(writer, reader)


def _bare(schema: Any) -> Any:
    """A schema without what does not change its encoding: documentation, and namespaces, which parts inherit."""
    if isinstance(schema, dict):
        return {key: _bare(value) for key, value in schema.items() if key not in {"doc", "namespace"}}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema


def _schema_id(data: bytes) -> int:
    return int.from_bytes(data[1:HEADER_BYTES], "big")


def _explain(error: Exception) -> str:
    if isinstance(error, IndexError | OverflowError):
        return "bytes are missing"
    if isinstance(error, KeyError):
        return f"no such enum symbol or boolean: {error}"
    return str(error)
