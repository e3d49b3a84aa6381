"""The released schema files, parsed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeAlias

__all__ = ["NAMESPACE", "AvroType", "SchemaFile", "inlined", "newest", "schema_files"]

AvroType: TypeAlias = str | list[Any] | dict[str, Any]
"""An Avro type as JSON has it: a name, a union, or a complex type."""

NAMESPACE = "mainspring"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFile:
    """One `avro/<group>/<record>.v<version>.avsc`: `text` is its exact content, `schema` the parsed JSON."""

    group: str
    record: str
    version: int
    text: str
    schema: dict[str, Any]

    @property
    def path(self) -> str:
        """Path below `avro/`, the name under which the lock knows it."""
        return f"{self.group}/{self.record}.v{self.version}.avsc"

    @property
    def full_name(self) -> str:
        """Name of the record with its namespace, as registries and messages have it."""
        return f"{NAMESPACE}.{self.record}"


@cache
def schema_files() -> tuple[SchemaFile, ...]:
    """All schema files of the package, sorted by path, versions in order."""
    found = [
        _read(group.name, file.name, file.read_bytes().decode("utf-8"))
        for group in files("mainspring.schemas").joinpath("avro").iterdir()
        for file in group.iterdir()
        if file.name.endswith(".avsc")
    ]
    return tuple(sorted(found, key=lambda each: (each.group, each.record, each.version)))


def _read(group: str, name: str, text: str) -> SchemaFile:
    record, version, _ = name.split(".")
    return SchemaFile(
        group=group, record=record, version=int(version.removeprefix("v")), text=text, schema=json.loads(text)
    )


@cache
def newest() -> Mapping[str, SchemaFile]:
    """The newest version of each record's schema, by record name: the one that is written."""
    return MappingProxyType({file.record: file for file in schema_files()})


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in which every named type stands in full wherever it occurs; Avro has it in full at its first place."""
    named: dict[str, Any] = {}

    def expand(kind: Any) -> Any:
        if isinstance(kind, list):
            return [expand(each) for each in kind]
        if isinstance(kind, str):
            return named.get(kind, kind)
        if kind["type"] == "array":
            return {**kind, "items": expand(kind["items"])}
        if kind["type"] == "record":
            kind = {**kind, "fields": [{**field, "type": expand(field["type"])} for field in kind["fields"]]}
        if "name" in kind:
            named[kind["name"]] = kind
        return kind

    expanded: dict[str, Any] = expand(schema)
    return expanded
