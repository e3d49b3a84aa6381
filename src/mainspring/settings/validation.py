"""From pydantic's errors to ours: the setting, where it was set, what is wrong, and the nearest right name."""

from collections.abc import Mapping
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from mainspring.settings.errors import Problem
from mainspring.settings.sources import known_paths

__all__ = ["problems_of", "without"]


def problems_of(
    error: ValidationError, model: type[BaseModel], origins: Mapping[tuple[str, ...], str]
) -> list[Problem]:
    """One problem per setting that is wrong; values are not repeated, for they may be secret."""
    problems: dict[str, Problem] = {}
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        path = tuple(str(part) for part in detail["loc"])
        name = ".".join(path)
        message = _unknown(model, path) if detail["type"] == "extra_forbidden" else _message(detail["msg"])
        problems.setdefault(name, Problem(path=name, message=message, origin=_origin(path, origins)))
    return list(problems.values())


def without(values: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    """A copy of the values without those that are wrong."""
    copy = deepcopy(dict(values))
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        inner: Any = copy
        for part in map(str, detail["loc"]):
            # The last parts of a location may name an alternative of a union, which is no key.
            if isinstance(inner.get(part), dict) and part != detail["loc"][-1]:
                inner = inner[part]
            else:
                inner.pop(part, None)
                break
    return copy


def _message(text: str) -> str:
    text = text.removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _origin(path: tuple[str, ...], origins: Mapping[tuple[str, ...], str]) -> str:
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return next((origin for leaf, origin in origins.items() if leaf[: len(path)] == path), "")


def _unknown(model: type[BaseModel], path: tuple[str, ...]) -> str:
    names = {".".join(known) for known in known_paths(model)} | {known[0] for known in known_paths(model)}
    if path[0] == "queues":
        names |= {name.replace("<name>", path[1]) for name in names}
    close = get_close_matches(".".join(path), sorted(names), n=1, cutoff=0.6)
    return "there is no such setting; " + (
        f"did you mean {close[0]}?" if close else "`mainspring config show` lists them"
    )
