"""One record of an export as a JSON line: readable fields for people, the exact bytes for programs."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from mainspring.log.errors import ExportFormatError
from mainspring.log.records import LogRecord
from mainspring.log.source import Raw

__all__ = ["json_line", "raw_of"]


def json_line(record: LogRecord) -> dict[str, Any]:
    """The line; topic and partition come first, so that a reader can tell them without parsing the rest."""
    return {
        **record.to_json(),
        "key_base64": _encoded(record.key),
        "value_base64": _encoded(record.value),
        "headers": [[name, _encoded(value)] for name, value in record.headers],
    }


def raw_of(line: Mapping[str, Any]) -> Raw:
    """The record's bytes, from its line. Raises ExportFormatError."""
    try:
        return Raw(
            line["offset"],
            line["timestamp_ms"],
            _decoded(line["key_base64"]),
            _decoded(line["value_base64"]),
            tuple((name, _decoded(value)) for name, value in line["headers"]),
        )
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise ExportFormatError(f"a line of the export is no record: {line!r:.200}") from error


def _encoded(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def _decoded(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value, validate=True)
