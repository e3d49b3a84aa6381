"""The committed lock: which schema files are released, under which id, with which content.

A log is read for years, so a released file never changes by a byte and an id never means another schema. Without a
schema registry the ids of the lock are the ids on the wire.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from mainspring.schemas.avro_types import SchemaFile, schema_files

__all__ = ["LOCK_FILE", "LockEntry", "check_lock", "extend_lock", "locked", "render_lock"]

LOCK_FILE = "schemas.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockEntry:
    """A released schema file: its id on the wire and the SHA-256 of its bytes."""

    id: int
    sha256: str


@cache
def locked() -> Mapping[str, LockEntry]:
    """The entries of the lock, by path below `avro/`."""
    entries = json.loads(files("mainspring.schemas").joinpath(LOCK_FILE).read_bytes())
    return MappingProxyType({path: LockEntry(**entry) for path, entry in entries.items()})


def sha256_of(file: SchemaFile) -> str:
    """The digest that the lock keeps of a schema file."""
    return hashlib.sha256(file.text.encode()).hexdigest()


def check_lock(entries: Mapping[str, LockEntry], found: Iterable[SchemaFile]) -> list[str]:
    """Compares the lock with the schema files. Returns one sentence per difference; none: they agree."""
    present = {file.path: file for file in found}
    problems = [f"{path}: released, and gone; restore the file" for path in entries.keys() - present.keys()]
    for path, file in present.items():
        entry = entries.get(path)
        if entry is None:
            problems.append(f"{path}: not in {LOCK_FILE}; add it with mainspring.schemas.lock.extend_lock")
        elif entry.sha256 != sha256_of(file):
            problems.append(
                f"{path}: released, and changed; restore it and put the change into a new version of the file"
            )
    ids = [entry.id for entry in entries.values()]
    problems += [f"id {each} is given twice" for each in sorted({each for each in ids if ids.count(each) > 1})]
    return sorted(problems)


def extend_lock(entries: Mapping[str, LockEntry], found: Iterable[SchemaFile]) -> dict[str, LockEntry]:
    """The lock with an entry, and the next free id, for each file that has none. What is there stays as it is."""
    extended = dict(entries)
    for file in sorted(found, key=lambda each: each.path):
        if file.path not in extended:
            next_id = max((entry.id for entry in extended.values()), default=0) + 1
            extended[file.path] = LockEntry(id=next_id, sha256=sha256_of(file))
    return extended


def render_lock(entries: Mapping[str, LockEntry]) -> str:
    """The text of the lock file, ordered by id so that an addition is an addition in a diff."""
    ordered = sorted(entries.items(), key=lambda each: each[1].id)
    return json.dumps({path: asdict(entry) for path, entry in ordered}, indent=2) + "\n"


def locked_schemas() -> dict[int, SchemaFile]:
    """The released schema files by id."""
    present = {file.path: file for file in schema_files()}
    return {entry.id: present[path] for path, entry in locked().items()}
