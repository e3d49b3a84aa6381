"""A log read back from an export: the same reading, the same audit, without a cluster."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from fastavro import block_reader

from mainspring.log import avroform, jsonform
from mainspring.log.errors import ExportFormatError
from mainspring.log.manifest import Manifest
from mainspring.log.source import Raw, Span
from mainspring.topics import Topic, Topology

__all__ = ["ExportedLog"]

BATCH = 2_000


class ExportedLog:
    """Reads an export in JSON lines or Avro. Opening it looks through it once, so a file that is cut short is noticed.

    Raises ExportFormatError for any other file, and for one that is not complete.
    """

    is_live = False

    def __init__(self, path: Path) -> None:
        self._form = _open(path)
        self._topology = self._form.manifest.topology

    @property
    def topology(self) -> Topology:
        """The topics of the installation that was exported."""
        return self._topology

    @property
    def manifest(self) -> Manifest:
        """What the export says about itself."""
        return self._form.manifest

    def spans(self, topics: Sequence[Topic]) -> dict[tuple[str, int], Span]:
        """What was there when it was exported; topics that were not have no records."""
        nothing = Span(start=0, end=0)
        spans = self.manifest.spans
        return {
            (topic.name, partition): spans.get((topic.name, partition), nothing)
            for topic in topics
            for partition in range(topic.partitions)
        }

    def at_time(self, topic: Topic, time_ms: int) -> Mapping[int, int | None]:
        """A file has no index of times."""
        return {}

    def read(self, topic: Topic, partition: int, span: Span) -> Iterator[Sequence[Raw]]:
        """The records of the span, in batches."""
        batch: list[Raw] = []
        for raw in self._form.records(topic.name, partition):
            if raw.offset >= span.end:
                break
            if raw.offset >= span.start:
                batch.append(raw)
            if len(batch) >= BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


class _Form(Protocol):
    manifest: Manifest

    def records(self, topic: str, partition: int) -> Iterator[Raw]: ...


def _open(path: Path) -> _Form:
    with path.open("rb") as file:
        head = file.read(4)
    if head == b"Obj\x01":
        return _AvroFile(path)
    if head[:1] == b"{":
        return _JsonFile(path)
    raise ExportFormatError(
        f"{path} is no export that can be read back: export as jsonl or avro (csv is for spreadsheets)"
    )


def _cut_short(path: Path) -> ExportFormatError:
    return ExportFormatError(f"{path} has no end: the export was cut short; export again")


class _JsonFile:
    """Where each partition begins, found by the head of each line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts: dict[tuple[str, int], int] = {}
        records, ended = 0, False
        with path.open("rb") as file:
            self.manifest = Manifest.parse(file.readline())
            at = file.tell()
            for line in file:
                if line.startswith(b'{"topic":'):
                    self._starts.setdefault(_head(line), at)
                    records += 1
                elif line.startswith(b'{"end":'):
                    ended = line.endswith(b"\n") and _parsed(line).get("records") == records
                at += len(line)
        if not ended:
            raise _cut_short(path)

    def records(self, topic: str, partition: int) -> Iterator[Raw]:
        at = self._starts.get((topic, partition))
        if at is None:
            return
        with self._path.open("rb") as file:
            file.seek(at)
            for line in file:
                parsed = _parsed(line)
                if (parsed.get("topic"), parsed.get("partition")) != (topic, partition):
                    return
                yield jsonform.raw_of(parsed)


def _head(line: bytes) -> tuple[str, int]:
    """Topic and partition, which are the first two fields, without parsing the whole line."""
    try:
        text = line[:600].decode("utf-8", "replace")
        topic, behind = json.JSONDecoder().raw_decode(text, len('{"topic":'))
        return str(topic), int(text[behind:].split(":", 1)[1].split(",", 1)[0])
    except (ValueError, IndexError) as error:
        raise ExportFormatError(f"a line of the export is no record: {line[:200]!r}") from error


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise ExportFormatError(f"a line of the export is no JSON: {line[:200]!r}") from error
    return parsed


class _AvroFile:
    """Where each partition begins, found by the first row of each block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts: dict[tuple[str, int], int] = {}
        records, end = 0, None
        try:
            with path.open("rb") as file:
                blocks = block_reader(file)
                metadata: Mapping[str, Any] = blocks.metadata
                self.manifest = Manifest.parse(metadata.get(avroform.MANIFEST_KEY, ""))
                for block in blocks:
                    first: Any = next(iter(block))
                    if first["topic"] == "":
                        end = first["partition"]
                        continue
                    records += block.num_records
                    self._starts.setdefault((first["topic"], first["partition"]), block.offset)
        except (EOFError, ValueError, StopIteration) as error:
            raise _cut_short(path) from error
        if end != records:
            raise _cut_short(path)

    def records(self, topic: str, partition: int) -> Iterator[Raw]:
        at = self._starts.get((topic, partition))
        if at is None:
            return
        with self._path.open("rb") as file:
            blocks = block_reader(file)
            file.seek(at)
            for block in blocks:
                for row in block:
                    record: Any = row
                    if (record["topic"], record["partition"]) != (topic, partition):
                        return
                    yield avroform.raw_of(record)
