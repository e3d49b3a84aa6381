"""One record of an export as a row of an Avro file."""

from typing import Any

from fastavro import parse_schema

from mainspring.log.source import Raw

__all__ = ["AVRO_LINE", "MANIFEST_KEY", "avro_line", "raw_of"]

MANIFEST_KEY = "mainspring.manifest"

AVRO_LINE: Any = parse_schema(
    {
        "type": "record",
        "name": "ExportedRecord",
        "namespace": "mainspring.export",
        "doc": "One record of a log, as its bytes. The last row has no topic; its partition is the number of records.",
        "fields": [
            {"name": "topic", "type": "string"},
            {"name": "partition", "type": "int"},
            {"name": "offset", "type": "long"},
            {"name": "timestamp_ms", "type": "long"},
            {"name": "key", "type": ["null", "bytes"]},
            {
                "name": "value",
                "type": ["null", "bytes"],
                "doc": "As on the topic: a zero byte, the schema id, the Avro body.",
            },
            {
                "name": "headers",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Header",
                        "fields": [
                            {"name": "name", "type": "string"},
                            {"name": "value", "type": ["null", "bytes"]},
                        ],
                    },
                },
            },
        ],
    }
)


def avro_line(topic: str, partition: int, raw: Raw) -> dict[str, Any]:
    """The row of a record."""
    return {
        "topic": topic,
        "partition": partition,
        "offset": raw.offset,
        "timestamp_ms": raw.timestamp_ms,
        "key": raw.key,
        "value": raw.value,
        "headers": [{"name": name, "value": value} for name, value in raw.headers],
    }


def raw_of(row: dict[str, Any]) -> Raw:
    """The record's bytes, from its row."""
    return Raw(
        row["offset"],
        row["timestamp_ms"],
        row["key"],
        row["value"],
        tuple((each["name"], each["value"]) for each in row["headers"]),
    )
