"""Compiled codecs: one encoder and one decoder function per schema, as source text made from the `.avsc`.

Why: a general Avro library walks the schema for every record and goes through a dict, 5-15 µs for a dozen fields. The
generated functions know their schema, read attributes and write slots directly, and look repeated integers up
(`benchmarks/codec.py` measures both). Nested records are written inline, so a record costs one call.

How records are built: a frozen dataclass sets each slot through `object.__setattr__`, which costs more than decoding
the value. The generated text fills an instance of a *twin* (same slots, same bases, not frozen) and then gives it the
frozen class; the interpreter checks that both have the same layout.

What the decoders rely on: indexing beyond the end raises, slicing beyond it stops, and the index then stands behind the
end, which the check at the end finds. So no length that a record claims is ever allocated.
"""

import struct
from collections.abc import Callable
from itertools import groupby
from typing import Any, cast

from mainspring.schemas import varint
from mainspring.schemas.avro_types import AvroType, inlined
from mainspring.schemas.common import Txn
from mainspring.schemas.job import RemembersBytes
from mainspring.schemas.records import ENUMS, class_of
from mainspring.schemas.source import Source

__all__ = ["READ_FAILURES", "WRITE_FAILURES", "Decode", "Encode", "compile_decoder", "compile_encoder"]

Encode = Callable[[Any, Txn | None, bytes], bytes]
"""(record, transaction position or None, header) to header + Avro. Raises all sorts for a value of a wrong type."""

Decode = Callable[[bytes, int], Any]
"""(bytes, index of the first Avro byte) to record. Raises all sorts for broken bytes."""

READ_FAILURES = (varint.MalformedError, IndexError, KeyError, OverflowError, UnicodeDecodeError, struct.error)
"""What a decoder raises for broken bytes."""

WRITE_FAILURES = (AttributeError, TypeError, OverflowError, UnicodeEncodeError)
"""What an encoder raises for a value that the schema cannot hold."""

_DOUBLE = struct.Struct("<d")
_JOIN = b"".join
_BOOLEANS = {0: False, 1: True}


# --- encoders ---------------------------------------------------------------------------------------------------------


def compile_encoder(schema: dict[str, Any]) -> Encode:
    """Compiles the encoder of a record schema."""
    source = Source("encode(record, txn, head)")
    parts = ["head", *_write_record(source, inlined(schema), "record")]
    source.add(f"return {source.refer('join', _JOIN)}(({', '.join(parts)},))")
    return source.compile(f"encoder of {schema['name']}")


def _write_record(source: Source, schema: dict[str, Any], target: str) -> list[str]:
    """Adds the lines that encode the record in variable `target`; returns expressions, whose values are its bytes."""
    if not issubclass(class_of(schema["name"]), RemembersBytes):
        return _write_fields(source, schema, target)
    whole = source.name("whole")
    with source.block("try:"):
        source.add(f"{whole} = {target}._encoded")
    with source.block("except AttributeError:"):
        parts = _write_fields(source, schema, target)
        source.add(f"{whole} = {source.refer('join', _JOIN)}(({', '.join(parts)},))")
        remember = source.refer("remember", RemembersBytes.__dict__["_encoded"].__set__)
        source.add(f"{remember}({target}, {whole})")
    return [whole]


def _write_fields(source: Source, schema: dict[str, Any], target: str) -> list[str]:
    parts: list[str] = []
    for field in schema["fields"]:
        value = source.name(field["name"])
        source.add(f"{value} = {target}.{field['name']}")
        if field["name"] == "txn" and target == "record":
            with source.block("if txn is not None:"):
                source.add(f"{value} = txn")
        parts += _write(source, field["type"], value)
    return parts


def _write(source: Source, kind: AvroType, value: str) -> list[str]:
    if isinstance(kind, list):
        return [_write_union(source, kind, value)]
    name = kind if isinstance(kind, str) else kind["type"]
    if name == "record":
        assert isinstance(kind, dict)
        return _write_record(source, kind, value)
    if name == "array":
        assert isinstance(kind, dict)
        return [_write_array(source, kind["items"], value)]
    if name == "enum":
        assert isinstance(kind, dict)
        return [_write_enum(source, kind, value)]
    return _write_primitive(source, name, value)


def _write_primitive(source: Source, name: str, value: str) -> list[str]:
    if name in {"long", "int"}:
        memo, slow = (varint.LONGS, varint.long_bytes) if name == "long" else (varint.INTS, varint.int_bytes)
        _demand(source, value, "int")
        source.add(f"{value} = {source.refer(name + 's', memo)}.get({value}) or {source.refer(name, slow)}({value})")
        return [value]
    if name == "boolean":
        _demand(source, value, "bool")
        return [rf'(b"\x01" if {value} else b"\x00")']
    if name == "double":
        _demand(source, value, "float")
        return [f"{source.refer('double', _DOUBLE.pack)}({value})"]
    if name == "string":
        # The method of `str` itself: `bytes` has no `encode`, and a lone surrogate raises.
        source.add(f"{value} = {value}.encode()")
    else:
        assert name == "bytes", name
        _demand(source, value, "bytes")
    return [_length(source, f"len({value})"), value]


def _length(source: Source, expression: str) -> str:
    size = source.name("size")
    source.add(f"{size} = {expression}")
    table, slow = source.refer("lengths", varint.LENGTHS), source.refer("length", varint.length_bytes)
    return f"({table}[{size}] if {size} < 1024 else {slow}({size}))"


def _demand(source: Source, value: str, kind: str) -> None:
    """Refuses every other class: `True` is an `int`, 1.0 equals 1, and neither may pass for it."""
    source.add(f"if {value}.__class__ is not {kind}: raise TypeError")


def _write_union(source: Source, kinds: list[Any], value: str) -> str:
    out = source.name("out")
    if kinds[0] != "null":
        return _write_choice(source, kinds, value, out)
    with source.block(f"if {value} is None:"):
        source.add(rf'{out} = b"\x00"')
    with source.block("else:"):
        parts = _write(source, _nullable(kinds), value)
        if len(parts) == 1:
            source.add(rf'{out} = b"\x02" + {parts[0]}')
        else:
            source.add(rf'{out} = {source.refer("join", _JOIN)}((b"\x02", {", ".join(parts)}))')
    return out


def _write_choice(source: Source, kinds: list[Any], value: str, out: str) -> str:
    """One of several records; which, tells its class."""
    for index, kind in enumerate(kinds):
        with source.block(f"{'elif' if index else 'if'} {value}.__class__ is {source.refer('class', _class(kind))}:"):
            branch = bytes([index << 1])
            parts = _write_record(source, kind, value)
            source.add(f"{out} = {source.refer('join', _JOIN)}(({branch!r}, {', '.join(parts)}))")
    with source.block("else:"):
        source.add("raise TypeError")
    return out


def _class(kind: AvroType) -> type[Any]:
    assert isinstance(kind, dict), kind
    assert kind["type"] == "record", kind
    return class_of(kind["name"])


def _nullable(kinds: list[Any]) -> AvroType:
    """The other branch of a union with null first; every other union of the language is one of records."""
    null, other = kinds
    assert null == "null", kinds
    return cast(AvroType, other)


def _write_array(source: Source, items: AvroType, value: str) -> str:
    out, collected, item = source.name("out"), source.name("items"), source.name("item")
    source.add(f"if {value}.__class__ is not tuple: raise TypeError")
    with source.block(f"if not {value}:"):
        source.add(rf'{out} = b"\x00"')
    with source.block("else:"):
        size = _length(source, f"len({value})")
        source.add(f"{collected} = [{size}]")
        with source.block(f"for {item} in {value}:"):
            source.add(f"{collected} += ({', '.join(_write(source, items, item))},)")
        source.add(rf'{collected} += (b"\x00",)', f"{out} = {source.refer('join', _JOIN)}({collected})")
    return out


def _write_enum(source: Source, kind: dict[str, Any], value: str) -> str:
    enum = source.refer("enum", class_of(kind["name"]))
    source.add(f"if {value}.__class__ is not {enum}: raise TypeError")
    return f"{source.refer('lengths', varint.LENGTHS)}[{value}]"


# --- decoders ---------------------------------------------------------------------------------------------------------


def compile_decoder(schema: dict[str, Any]) -> Decode:
    """Compiles the decoder of a record schema."""
    source = Source("decode(d, i)")
    record = _read_record(source, inlined(schema))
    malformed = source.refer("malformed", varint.MalformedError)
    source.add(f'if i != len(d): raise {malformed}("bytes " + ("are missing" if i > len(d) else "are left over"))')
    source.add(f"return {record}")
    return source.compile(f"decoder of {schema['name']}")


def _twin(kind: type[Any]) -> type[Any]:
    """A class with the layout of `kind` that lets its slots be set."""
    return type(f"{kind.__name__}Twin", kind.__bases__, {"__slots__": kind.__slots__})


def _read_record(source: Source, schema: dict[str, Any]) -> str:
    kind = class_of(schema["name"])
    record, start = source.name("record"), source.name("start")
    source.add(f"{record} = {source.refer('twin', _twin(kind))}()")
    remembers = issubclass(kind, RemembersBytes)
    if remembers:
        source.add(f"{start} = i")
    for is_run, run in groupby(schema["fields"], key=lambda field: _absence(field["type"]) is not None):
        _read_fields(source, list(run), record, is_run=is_run)
    if remembers:
        source.add(f"{record}._encoded = d[{start}:i]")
    source.add(f"{record}.__class__ = {source.refer('class', kind)}")
    return record


def _absence(kind: AvroType) -> str | None:
    """What a zero byte means for a type that is mostly absent: a union with null, or an array."""
    if isinstance(kind, list):
        return "None" if kind[0] == "null" else None
    return "()" if isinstance(kind, dict) and kind["type"] == "array" else None


def _read_fields(source: Source, fields: list[dict[str, Any]], record: str, *, is_run: bool) -> None:
    """Neighbours that are mostly absent are compared with as many zero bytes at once."""
    if not is_run or len(fields) == 1:
        for field in fields:
            _read(source, field["type"], f"{record}.{field['name']}", instant=_is_instant(field["name"]))
        return
    count = len(fields)
    with source.block(rf"if d[i : i + {count}] == {bytes(count)!r}:"):
        source.add(*(f"{record}.{field['name']} = {_absence(field['type'])}" for field in fields), f"i += {count}")
    with source.block("else:"):
        for field in fields:
            _read(source, field["type"], f"{record}.{field['name']}", instant=_is_instant(field["name"]))


def _is_instant(name: str) -> bool:
    """Whether a field holds an instant, going by its name; it decides about speed only."""
    return name.endswith(("_at_ms", "deadline_ms"))


def _read(source: Source, kind: AvroType, target: str, *, instant: bool = False) -> None:
    """Adds the lines that decode a value at `i` into `target` and move `i` behind it."""
    if isinstance(kind, list):
        _read_union(source, kind, target, instant=instant)
        return
    name = kind if isinstance(kind, str) else kind["type"]
    if name == "record":
        assert isinstance(kind, dict)
        source.add(f"{target} = {_read_record(source, kind)}")
    elif name == "array":
        assert isinstance(kind, dict)
        _read_array(source, kind["items"], target)
    elif name == "enum":
        assert isinstance(kind, dict)
        members = {member.value * 2: member for member in ENUMS[kind["name"]]}
        source.add(f"{target} = {source.refer('members', members)}[d[i]]", "i += 1")
    elif name in {"long", "int"}:
        _read_integer(source, name, target, instant=instant)
    else:
        _read_primitive(source, name, target)


def _read_integer(source: Source, name: str, target: str, *, instant: bool) -> None:
    source.add("z = d[i]")
    with source.block("if z < 128:"):
        source.add(f"{target} = (z >> 1) ^ -(z & 1)", "i += 1")
    if instant:
        with source.block(f"elif (z := {source.refer('instants', varint.INSTANTS)}.get(d[i : i + 6])) is not None:"):
            source.add(f"{target} = z", "i += 6")
        slow = source.refer("instant", varint.read_instant)
    else:
        with source.block("elif d[i + 1] < 128:"):
            source.add("z = z & 127 | d[i + 1] << 7", f"{target} = (z >> 1) ^ -(z & 1)", "i += 2")
        slow = source.refer(name, varint.read_int if name == "int" else varint.read_long)
    with source.block("else:"):
        source.add(f"{target}, i = {slow}(d, i)")


def _read_primitive(source: Source, name: str, target: str) -> None:
    if name == "boolean":
        source.add(f"{target} = {source.refer('booleans', _BOOLEANS)}[d[i]]", "i += 1")
    elif name == "double":
        source.add(f"{target} = {source.refer('double', _DOUBLE.unpack_from)}(d, i)[0]", "i += 8")
    else:
        _read_length(source, "n")
        source.add(f"{target} = d[i : (i := i + n)]{'.decode()' if name == 'string' else ''}")


def _read_length(source: Source, name: str) -> None:
    source.add(f"{name} = d[i]")
    # Above 127 more bytes follow; odd is negative.
    with source.block(f"if {name} & 129:"):
        source.add(f"{name}, i = {source.refer('length', varint.read_length)}(d, i)")
    with source.block("else:"):
        source.add(f"{name} >>= 1", "i += 1")


def _read_union(source: Source, kinds: list[Any], target: str, *, instant: bool) -> None:
    source.add("z = d[i]", "i += 1")
    if kinds[0] != "null":
        _read_choice(source, kinds, target)
        return
    with source.block("if z == 0:"):
        source.add(f"{target} = None")
    with source.block("elif z == 2:"):
        _read(source, _nullable(kinds), target, instant=instant)
    with source.block("else:"):
        source.add(f'raise {source.refer("malformed", varint.MalformedError)}("no such branch of a union")')


def _read_choice(source: Source, kinds: list[Any], target: str) -> None:
    for index, kind in enumerate(kinds):
        with source.block(f"{'elif' if index else 'if'} z == {index << 1}:"):
            source.add(f"{target} = {_read_record(source, kind)}")
    with source.block("else:"):
        source.add(f'raise {source.refer("malformed", varint.MalformedError)}("no such branch of a union")')


def _read_array(source: Source, items: AvroType, target: str) -> None:
    collected, count, item = source.name("items"), source.name("count"), source.name("item")
    with source.block("if d[i] == 0:"):
        source.add(f"{target} = ()", "i += 1")
    with source.block("else:"):
        source.add(f"{collected} = []")
        with source.block("while True:"):
            source.add(f"{count}, i = {source.refer('long', varint.read_long)}(d, i)")
            source.add(f"if {count} == 0: break")
            with source.block(f"if {count} < 0:"):
                # A block that tells its size in bytes, for readers that skip it.
                source.add(f"{count} = -{count}", f"n, i = {source.refer('length', varint.read_length)}(d, i)")
            # Every item takes a byte at least, so a claimed count ends at the end of the bytes.
            with source.block(f"while {count}:"):
                source.add(f"{count} -= 1")
                _read(source, items, item)
                source.add(f"{collected}.append({item})")
        source.add(f"{target} = tuple({collected})")
