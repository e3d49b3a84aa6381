"""Schema files, dataclasses and the lock say the same."""

import dataclasses
import functools
import operator
import types
import typing
from dataclasses import MISSING, replace
from enum import IntEnum
from typing import Any

import pytest

import mainspring.schemas
from mainspring.schemas.avro_types import AvroType, SchemaFile, newest, schema_files
from mainspring.schemas.lock import LockEntry, check_lock, extend_lock, locked, render_lock
from mainspring.schemas.records import ENUMS, PARTS, RECORDS, class_of

FILES = schema_files()
PRIMITIVES: dict[str, type[Any]] = {
    "string": str,
    "bytes": bytes,
    "int": int,
    "long": int,
    "boolean": bool,
    "double": float,
}


def named_types(kind: AvroType) -> typing.Iterator[dict[str, Any]]:
    """Every record and enum inside a type, itself included."""
    if isinstance(kind, list):
        for each in kind:
            yield from named_types(each)
    elif isinstance(kind, dict):
        if kind["type"] in {"record", "enum"}:
            yield kind
        for field in kind.get("fields", ()):
            yield from named_types(field["type"])
        yield from named_types(kind.get("items", "null"))


def python_type(kind: AvroType) -> Any:
    """The annotation that a field of this Avro type must have."""
    if isinstance(kind, list):
        if kind[0] != "null":
            assert all(python_type(each) in PARTS.values() for each in kind), "a union without null is one of records"
            return functools.reduce(operator.or_, map(python_type, kind))
        assert len(kind) == 2
        return python_type(kind[1]) | None
    if isinstance(kind, str):
        return PRIMITIVES.get(kind) or class_of(kind)
    if kind["type"] == "array":
        return tuple.__class_getitem__((python_type(kind["items"]), ...))
    return class_of(kind["name"])


def python_default(field: dict[str, Any]) -> Any:
    """The default that a dataclass field must have; MISSING for none."""
    if "default" not in field:
        return MISSING
    default, kind = field["default"], field["type"]
    if isinstance(kind, dict) and kind["type"] == "enum":
        return class_of(kind["name"])[default]
    if isinstance(default, list):
        return tuple(default)
    return default.encode("latin-1") if kind == "bytes" else default


ALL_NAMED = [(file.path, named) for file in FILES for named in named_types(file.schema)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path)
def test_a_schema_file_is_named_after_its_record_and_lies_in_the_group_of_its_module(file: SchemaFile) -> None:
    assert file.schema["name"] == file.record
    assert file.schema["namespace"] == "mainspring"
    assert class_of(file.record).__module__ == f"mainspring.schemas.{file.group}"
    assert file.text.endswith("}\n")


def test_every_record_class_has_a_schema_and_every_schema_a_record_class() -> None:
    assert set(newest()) == set(RECORDS)


def test_every_dataclass_and_enum_of_the_modules_is_a_record_a_part_or_an_enum_of_the_language() -> None:
    modules = {kind.__module__ for kind in RECORDS.values()} | {"mainspring.schemas.common"}
    found = {
        name: thing
        for module in modules
        for name, thing in vars(__import__(module, fromlist=["_"])).items()
        if isinstance(thing, type) and thing.__module__ == module and name != "RemembersBytes"
    }

    assert found == {**RECORDS, **PARTS, **ENUMS}


@pytest.mark.parametrize(("path", "named"), ALL_NAMED, ids=lambda each: each if isinstance(each, str) else each["name"])
def test_names_types_defaults_and_words_of_a_schema_are_those_of_its_class(path: str, named: dict[str, Any]) -> None:
    kind = class_of(named["name"])
    assert named["doc"] == (kind.__doc__ or ""), path
    if issubclass(kind, IntEnum):
        assert [(member.name, member.value) for member in kind] == [
            (name, i) for i, name in enumerate(named["symbols"])
        ]
        assert named["default"] in named["symbols"], "an old reader needs a default for a new symbol"
        return
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    assert [field.name for field in fields] == [field["name"] for field in named["fields"]]
    for mine, theirs in zip(fields, named["fields"], strict=True):
        assert hints[mine.name] == python_type(theirs["type"]), f"{path}: {mine.name}"
        assert mine.default == python_default(theirs), f"{path}: {mine.name}"
        assert theirs["doc"].strip(), f"{path}: {mine.name} has no doc"
        assert theirs["doc"].endswith("."), f"{path}: {mine.name}: {theirs['doc']}"
    parameters = kind.__dataclass_params__
    assert parameters.frozen
    assert hasattr(kind, "__slots__")
    assert all(field.kw_only for field in fields)


@pytest.mark.parametrize("name", sorted({named["name"] for _, named in ALL_NAMED}))
def test_a_part_that_several_schemas_carry_is_the_same_in_all_newest_ones(name: str) -> None:
    found = [named for file in newest().values() for named in named_types(file.schema) if named["name"] == name]

    assert all(each == found[0] for each in found)


def test_the_lock_agrees_with_the_schema_files() -> None:
    assert check_lock(locked(), FILES) == []


def test_the_lock_file_is_written_as_render_lock_writes_it() -> None:
    from importlib.resources import files

    assert files("mainspring.schemas").joinpath("schemas.lock").read_text(encoding="utf-8") == render_lock(locked())


def test_a_released_file_that_changes_by_one_byte_is_found() -> None:
    changed = replace(FILES[0], text=FILES[0].text + " ")

    assert check_lock(locked(), (changed, *FILES[1:])) == [
        f"{changed.path}: released, and changed; restore it and put the change into a new version of the file"
    ]


def test_a_released_file_that_is_gone_and_a_new_one_that_is_not_locked_are_found() -> None:
    renamed = replace(FILES[0], record="Novelty")

    problems = check_lock(locked(), (renamed, *FILES[1:]))

    assert [problem.split(":")[0] for problem in problems] == [FILES[0].path, renamed.path]


def test_an_id_that_is_given_twice_is_found() -> None:
    first, second = FILES[:2]
    entries = dict(locked()) | {first.path: replace(locked()[first.path], id=locked()[second.path].id)}

    assert check_lock(entries, FILES) == [f"id {locked()[second.path].id} is given twice"]


def test_extending_the_lock_gives_new_files_the_next_ids_and_keeps_the_others() -> None:
    second = replace(FILES[0], version=2)

    extended = extend_lock(locked(), (*FILES, second))

    assert extended.items() >= locked().items()
    assert extended[second.path] == LockEntry(
        id=max(entry.id for entry in locked().values()) + 1, sha256=extended[second.path].sha256
    )
    assert check_lock(extended, (*FILES, second)) == []


def test_what_the_package_exports_is_what_can_be_imported_sorted() -> None:
    exported = mainspring.schemas.__all__
    public = {
        name
        for name, thing in vars(mainspring.schemas).items()
        if not name.startswith("_") and not isinstance(thing, types.ModuleType)
    }

    assert set(exported) == public
    assert len(exported) == len(set(exported))
    assert exported == sorted(exported, key=lambda name: (not name.isupper(), name))
    assert {*RECORDS, *PARTS, *ENUMS} <= public
