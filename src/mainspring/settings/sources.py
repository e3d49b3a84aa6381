"""Where values come from: flags, the environment, secret files, a file; and which of them won."""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from mainspring.settings.errors import Problem

__all__ = [
    "CONFIG_FILE",
    "PREFIX",
    "RESERVED",
    "Layer",
    "dict_value",
    "env_name",
    "known_paths",
    "merge",
    "model_of",
    "read_layers",
]

PREFIX = "MAINSPRING_"
CONFIG_FILE = Path("mainspring.toml")
# Variables with our prefix that are read before there are settings.
RESERVED = frozenset({"MAINSPRING_CONFIG", "MAINSPRING_SECRETS_DIR", "MAINSPRING_HOME"})

Path_ = tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Layer:
    """The values of one source as a nested dict, with the origin of each leaf, and what is wrong with their names."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path_, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_layers(
    model: type[BaseModel], *, flags: Mapping[str, object], environ: Mapping[str, str], config: Path | None
) -> list[Layer]:
    """Every source, the strongest first: flags (dotted names), environment, secret files, the TOML file.

    `config` is the file of `--config`; without it `MAINSPRING_CONFIG`, then `mainspring.toml` in the working directory.
    """
    secrets_dir = Path(environ.get("MAINSPRING_SECRETS_DIR", "/run/secrets"))
    return [
        _from_flags(flags),
        _from_variables(model, environ, "environment {}"),
        _from_variables(model, dict(_secret_files(secrets_dir)), f"file {secrets_dir}/{{}}"),
        _from_toml(config, environ),
    ]


def merge(layers: list[Layer]) -> Layer:
    """One layer in which the earlier of `layers` win, leaf by leaf."""
    merged = Layer()
    for layer in reversed(layers):
        for path, value in _leaves(layer.values):
            _put(merged.values, path, value)
            merged.origins[path] = layer.origins.get(path, "")
        merged.problems.extend(layer.problems)
    return merged


def env_name(path: Path_) -> str:
    """The environment variable of a setting."""
    return PREFIX + "__".join(path).upper()


def known_paths(model: type[BaseModel], prefix: Path_ = ()) -> Iterator[Path_]:
    """The path of every setting; `<name>` stands for a key that the user chooses."""
    for name, info in model.model_fields.items():
        child = model_of(info.annotation)
        item = dict_value(info.annotation)
        if child is not None:
            yield from known_paths(child, (*prefix, name))
        elif item is not None and (item_model := model_of(item)) is not None:
            yield from known_paths(item_model, (*prefix, name, "<name>"))
        elif item is not None:
            yield (*prefix, name, "<name>")
        else:
            yield (*prefix, name)


def _from_flags(flags: Mapping[str, object]) -> Layer:
    layer = Layer()
    for name, value in flags.items():
        if value is not None:
            path = tuple(name.split("."))
            _put(layer.values, path, value)
            layer.origins[path] = "flag"
    return layer


def _from_variables(model: type[BaseModel], variables: Mapping[str, str], origin: str) -> Layer:
    layer = Layer()
    for name in sorted(variables):
        if not name.upper().startswith(PREFIX) or name.upper() in RESERVED:
            continue
        path = _resolve(model, name[len(PREFIX) :].split("__"))
        if path is None:
            layer.problems.append(Problem(path=name, message=_unknown_variable(model, name)))
            continue
        # Compose files hand on variables that nobody has set as empty ones.
        if not variables[name]:
            continue
        for leaf, value in _leaves_of(path, variables[name]):
            _put(layer.values, leaf, value)
            layer.origins[leaf] = origin.format(name)
    return layer


def _leaves_of(path: Path_, text: str) -> Iterator[tuple[Path_, Any]]:
    if text.lstrip().startswith("{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict):
            yield from ((path + rest, value) for rest, value in _leaves(parsed))
            return
    yield path, text


def _secret_files(directory: Path) -> Iterator[tuple[str, str]]:
    if not directory.is_dir():
        return
    for entry in directory.iterdir():
        if entry.name.upper().startswith(PREFIX) and entry.is_file():
            yield entry.name, entry.read_text(encoding="utf-8").strip()


def _from_toml(config: Path | None, environ: Mapping[str, str]) -> Layer:
    layer = Layer()
    chosen = config or (Path(environ["MAINSPRING_CONFIG"]) if environ.get("MAINSPRING_CONFIG") else None)
    path = chosen or CONFIG_FILE
    if chosen is None and not path.is_file():
        return layer
    try:
        layer.values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}; give another file with --config or MAINSPRING_CONFIG"
        layer.problems.append(Problem(path=str(path), message=message))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        layer.problems.append(Problem(path=str(path), message=f"is not TOML: {error}"))
    for leaf, _ in _leaves(layer.values):
        layer.origins[leaf] = f"file {path}"
    return layer


def _resolve(model: type[BaseModel], parts: list[str]) -> Path_ | None:
    """The setting that a variable's parts name, in any case; None when there is none."""
    annotation: Any = model
    path: list[str] = []
    for index, part in enumerate(parts):
        child = model_of(annotation)
        item = dict_value(annotation)
        if child is not None:
            name = part.lower()
            if name not in child.model_fields:
                return None
            annotation = child.model_fields[name].annotation
            path.append(name)
        elif item is not None:
            annotation = item
            path.append(_key(path, "__".join(parts[index:]) if model_of(item) is None else part))
            if model_of(item) is None:
                return tuple(path)
        else:
            return None
    return tuple(path)


def _key(path: list[str], part: str) -> str:
    lowered = part.lower()
    return lowered.replace("_", ".") if path == ["kafka", "options"] else lowered


def _unknown_variable(model: type[BaseModel], name: str) -> str:
    names = [env_name(path).replace("<NAME>", "<name>") for path in known_paths(model)]
    close = get_close_matches(name.upper(), names, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}?" if close else "`mainspring config show` lists them all"
    return f"there is no such setting; {hint}"


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The section behind a type, if it is one."""
    for candidate in _alternatives(annotation):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def dict_value(annotation: Any) -> Any:
    """The type of the values if the type is a mapping, else None."""
    for candidate in _alternatives(annotation):
        if get_origin(candidate) is dict:
            return get_args(candidate)[1]
    return None


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _leaves(values: Mapping[str, Any], prefix: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _put(values: dict[str, Any], path: Path_, value: Any) -> None:
    for name in path[:-1]:
        inner = values.get(name)
        if not isinstance(inner, dict):
            inner = values[name] = {}
        values = inner
    values[path[-1]] = value


def default_environ() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ
