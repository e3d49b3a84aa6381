"""Settings in a form that may be shown."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, Secret, SecretStr

__all__ = ["flatten"]


def flatten(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """The leaves below `value` with their paths, in plain JSON types, secrets hidden."""
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from flatten(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from flatten(item, (*path, str(name)))
    else:
        yield path, _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, SecretStr | Secret | Path):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
