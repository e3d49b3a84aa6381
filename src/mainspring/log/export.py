"""Writing a log to a file: JSON lines to look at, Avro to keep, CSV for spreadsheets."""

import csv
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from fastavro.write import Writer

from mainspring.log.avroform import AVRO_LINE, MANIFEST_KEY, avro_line
from mainspring.log.jsonform import json_line
from mainspring.log.manifest import Manifest
from mainspring.log.records import LogRecord, decoded
from mainspring.log.source import LogSource, Raw, capture
from mainspring.processors.projector.eventdata import jsonable
from mainspring.schemas import Codec
from mainspring.topics import Topic

__all__ = ["ExportFormat", "ExportSummary", "export"]


class ExportFormat(StrEnum):
    """`jsonl` and `avro` can be read back and audited, `csv` cannot."""

    JSONL = "jsonl"
    AVRO = "avro"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSummary:
    """What was written."""

    path: Path
    records: int
    bytes: int


def export(
    source: LogSource,
    codec: Codec,
    path: Path,
    *,
    form: ExportFormat = ExportFormat.JSONL,
    topics: Sequence[Topic] | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExportSummary:
    """Writes all that an audit reads, or the `topics` alone, by topic, partition and offset; memory stays flat.

    The file appears under its name when it is complete; an existing one is replaced. `progress` is told the records
    written so far. Raises LogError.
    """
    topology = source.topology
    everything = [
        topology.commands,
        topology.followups,
        topology.attempts,
        topology.events,
        topology.scheduler_changelog,
        topology.dead_letters,
    ]
    chosen = list(topics) if topics is not None else everything
    spans = capture(source) if topics is None else source.spans(chosen)
    manifest = Manifest(
        prefix=topology.prefix,
        partitions=topology.partitions,
        exported_at_ms=int(time.time() * 1000),
        spans=spans,
    )
    unfinished = path.with_name(f".{path.name}.part")
    records = 0
    try:
        with _FORMS[form](unfinished, codec, manifest) as writer:
            for topic in chosen:
                for partition in range(topic.partitions):
                    for batch in source.read(topic, partition, spans[topic.name, partition]):
                        writer.write(topic, partition, batch)
                        records += len(batch)
                        if progress is not None:
                            progress(records)
                    writer.end_of_partition()
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return ExportSummary(path=path, records=records, bytes=path.stat().st_size)


class _Form(Protocol):
    def __init__(self, path: Path, codec: Codec, manifest: Manifest) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def write(self, topic: Topic, partition: int, batch: Iterable[Raw]) -> None: ...

    def end_of_partition(self) -> None: ...


class _File:
    """The open file of a form."""

    mode = "wb"

    def __init__(self, path: Path, codec: Codec, manifest: Manifest) -> None:
        self._codec = codec
        self._records = 0
        text = {"encoding": "utf-8", "newline": ""} if "b" not in self.mode else {}
        self._file: IO[Any] = path.open(self.mode, **text)  # type: ignore[call-overload]  # chosen by the mode
        self._begin(manifest)

    def _begin(self, manifest: Manifest) -> None:
        """Writes the head."""

    def _finish(self) -> None:
        """Writes the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._file.close()

    def end_of_partition(self) -> None:
        """A place at which a reader may begin."""


class _JsonLines(_File):
    def _begin(self, manifest: Manifest) -> None:
        self._line(manifest.to_json())

    def write(self, topic: Topic, partition: int, batch: Iterable[Raw]) -> None:
        for raw in batch:
            self._line(json_line(decoded(self._codec, topic.name, partition, raw)))
            self._records += 1

    def _finish(self) -> None:
        self._line({"end": True, "records": self._records})

    def _line(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


class _Avro(_File):
    def _begin(self, manifest: Manifest) -> None:
        metadata = {MANIFEST_KEY: json.dumps(manifest.to_json())}
        self._writer = Writer(self._file, AVRO_LINE, codec="deflate", metadata=metadata, sync_interval=1 << 20)

    def write(self, topic: Topic, partition: int, batch: Iterable[Raw]) -> None:
        for raw in batch:
            self._writer.write(avro_line(topic.name, partition, raw))
            self._records += 1

    def end_of_partition(self) -> None:
        # A block of its own for each partition, so that a reader finds its beginning.
        self._writer.flush()

    def _finish(self) -> None:
        self._writer.write(avro_line("", self._records, Raw(-1, -1, None, None)))
        self._writer.flush()


class _Csv(_File):
    mode = "w"
    _COLUMNS = (
        *("topic", "partition", "offset", "timestamp_ms", "key", "type", "job_id", "revision", "decided_at_ms"),
        "fields",
    )

    def _begin(self, manifest: Manifest) -> None:
        self._rows = csv.writer(self._file)
        self._rows.writerow(self._COLUMNS)

    def write(self, topic: Topic, partition: int, batch: Iterable[Raw]) -> None:
        for raw in batch:
            self._rows.writerow(_csv_row(decoded(self._codec, topic.name, partition, raw)))


def _csv_row(each: LogRecord) -> list[Any]:
    record: Any = each.record
    return [
        each.place.topic,
        each.place.partition,
        each.place.offset,
        each.timestamp_ms,
        "" if each.key is None else _harmless(each.key.decode("utf-8", "backslashreplace")),
        each.type,
        _harmless(str(getattr(record, "job_id", "") or "")),
        getattr(record, "revision", ""),
        getattr(record, "decided_at_ms", ""),
        each.error or ("" if record is None else json.dumps(jsonable(record), ensure_ascii=False)),
    ]


def _harmless(text: str) -> str:
    """Text that a spreadsheet does not take for a formula: ids come from users."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text


_FORMS: dict[ExportFormat, type[_Form]] = {
    ExportFormat.JSONL: _JsonLines,
    ExportFormat.AVRO: _Avro,
    ExportFormat.CSV: _Csv,
}
