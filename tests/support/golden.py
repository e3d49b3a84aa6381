"""Golden bytes: what each version of each record looked like on the wire.

`python -m tests.support.golden` adds those that are missing; files are only ever added. Each holds the record as plain
values and its Avro body in hexadecimal.
"""

import json
from pathlib import Path
from typing import Any

from mainspring.schemas import Codec
from mainspring.schemas.avro_types import AvroType, SchemaFile, inlined, newest
from mainspring.schemas.records import ENUMS, class_of
from tests.support.avro import to_plain

__all__ = ["GOLDEN", "body_of", "example", "golden_path", "values_of"]

GOLDEN = Path(__file__).parent.parent / "golden" / "records"


def golden_path(file: SchemaFile) -> Path:
    """Where the golden bytes of a schema version are."""
    return GOLDEN / f"{file.record}.v{file.version}.json"


def body_of(golden: dict[str, Any]) -> bytes:
    """The Avro body that a golden file holds."""
    return bytes.fromhex("".join(golden["body"]))


def values_of(record: Any) -> Any:
    """A record as JSON can hold it: bytes as hexadecimal text."""
    return json.loads(json.dumps(to_plain(record), default=bytes.hex))


def example(kind: AvroType, name: str, number: int) -> Any:
    """A value that tells its field: text with its name, numbers by its place; every optional field is there."""
    if isinstance(kind, list):
        return example(kind[1 if kind[0] == "null" else number % len(kind)], name, number)
    if isinstance(kind, str):
        plain = {"string": f"{name} é 😀", "bytes": name.encode() + b"\x00\xff", "boolean": True, "double": 0.25}
        if kind in plain:
            return plain[kind]
        return (1_796_047_454_123 if name.endswith("_ms") and kind == "long" else 300) + number
    if kind["type"] == "array":
        return (example(kind["items"], name, 1), example(kind["items"], name, 2))
    if kind["type"] == "enum":
        return list(ENUMS[kind["name"]])[-1]
    values = {field["name"]: example(field["type"], field["name"], place) for place, field in enumerate(kind["fields"])}
    return class_of(kind["name"])(**values)


def _add_missing() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for file in newest().values():
        if golden_path(file).exists():
            continue
        record = example(inlined(file.schema), file.record, 0)
        body = Codec.embedded().encode(record)[5:].hex()
        lines = [body[start : start + 100] for start in range(0, len(body), 100)]
        text = json.dumps({"values": values_of(record), "body": lines}, indent=2, ensure_ascii=False)
        golden_path(file).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    _add_missing()
