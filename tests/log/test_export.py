"""A log in a file is the same log: record by record, and to the auditor."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mainspring.log import ExportedLog, ExportFormat, ExportFormatError, Raw, export, history, verify
from mainspring.log.source import LogSource
from tests.log.conftest import Written

READABLE = [ExportFormat.JSONL, ExportFormat.AVRO]


def everything(source: LogSource) -> dict[tuple[str, int], list[Raw]]:
    topology = source.topology
    topics = [
        topology.commands,
        topology.followups,
        topology.attempts,
        topology.events,
        topology.scheduler_changelog,
        topology.dead_letters,
    ]
    return {
        (topic.name, partition): [
            raw
            for batch in source.read(topic, partition, source.spans([topic])[topic.name, partition])
            for raw in batch
        ]
        for topic in topics
        for partition in range(topic.partitions)
    }


@pytest.mark.parametrize("form", READABLE)
def test_an_export_read_back_is_the_log_byte_for_byte(written: Written, tmp_path: Path, form: ExportFormat) -> None:
    # given a log with a header, a key that is no text, a deleted row and a record that does not decode
    topic = written.topology.commands
    written.log.append(topic, 0, b"\xff\xfe", b"garbage", 1)
    written.log.patch(topic, 0, 0, headers=(("traceparent", b"00-1"), ("empty", None)))

    summary = export(written.log, written.codec, tmp_path / "log", form=form)

    back = ExportedLog(tmp_path / "log")
    assert everything(back) == everything(written.log)
    assert summary.records == sum(map(len, everything(written.log).values()))
    assert summary.bytes == (tmp_path / "log").stat().st_size
    assert (back.topology.prefix, back.topology.partitions) == (written.topology.prefix, 2)


@pytest.mark.parametrize("form", READABLE)
def test_the_auditor_says_the_same_of_an_export_as_of_its_log(
    written: Written, tmp_path: Path, form: ExportFormat
) -> None:
    topic = written.topology.events
    export(written.log, written.codec, tmp_path / "sound", form=form)
    records = written.log.records[topic.name, 0]
    at = next(place for place in range(10, len(records)) if records[place] is not None)
    records[at] = None
    export(written.log, written.codec, tmp_path / "damaged", form=form)

    sound = verify(ExportedLog(tmp_path / "sound"), written.codec)
    damaged = verify(ExportedLog(tmp_path / "damaged"), written.codec)

    assert sound.ok, [str(finding) for finding in sound.findings]
    assert damaged.findings == verify(written.log, written.codec).findings
    assert damaged.findings


@pytest.mark.parametrize("form", READABLE)
def test_a_jobs_history_is_read_from_an_export_too(written: Written, tmp_path: Path, form: ExportFormat) -> None:
    export(written.log, written.codec, tmp_path / "log", form=form)

    told = history(ExportedLog(tmp_path / "log"), written.codec, "retried")

    assert told == history(written.log, written.codec, "retried")


@pytest.mark.parametrize("form", READABLE)
def test_a_file_that_was_cut_short_is_refused(written: Written, tmp_path: Path, form: ExportFormat) -> None:
    path = tmp_path / "log"
    export(written.log, written.codec, path, form=form)
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) // 2):
        path.write_bytes(whole[:length])

        with pytest.raises(ExportFormatError, match="cut short"):
            ExportedLog(path)


def test_a_csv_has_one_row_a_record_and_says_that_it_cannot_be_read_back(written: Written, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    summary = export(written.log, written.codec, path, form=ExportFormat.CSV, topics=[written.topology.events])

    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == summary.records == 45
    started = next(row for row in rows if row["type"] == "JobStarted" and row["job_id"] == "runs")
    assert json.loads(started["fields"])["attempt"] == 1
    with pytest.raises(ExportFormatError, match="jsonl or avro"):
        ExportedLog(path)


def test_an_id_that_looks_like_a_formula_is_none_in_a_spreadsheet(empty: Written, tmp_path: Path) -> None:
    empty.double.submit("=1+1")
    export(empty.log, empty.codec, tmp_path / "log.csv", form=ExportFormat.CSV)

    with (tmp_path / "log.csv").open(newline="", encoding="utf-8") as file:
        assert {row["job_id"] for row in csv.DictReader(file)} == {"", "'=1+1"}


def test_a_failed_export_leaves_the_former_file_and_nothing_else(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("former")

    def breaks(*_: object) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        export(written.log, written.codec, path, progress=breaks)

    assert path.read_text() == "former"
    assert list(tmp_path.iterdir()) == [path]


def test_the_lines_of_an_export_can_be_read_by_people(written: Written, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    export(written.log, written.codec, path, topics=[written.topology.events])

    lines = [json.loads(line) for line in path.read_text().splitlines()]

    assert lines[0]["mainspring_log"] == 1
    assert lines[-1] == {"end": True, "records": 45}
    submitted = next(line for line in lines if line.get("type") == "JobSubmitted")
    assert submitted["record"]["spec"]["name"] == "add"
    assert submitted["record"]["cause"]["source"] == "COMMANDS"
