"""`docs/settings.md` and `.env.example`, written from the settings themselves."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, Secret, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from mainspring.settings.model import Settings
from mainspring.settings.sources import dict_value, env_name, model_of

__all__ = ["env_example", "settings_markdown"]

_HEAD = """# Settings

<!-- Generated from mainspring.settings; do not edit. -->

Every process and every command reads the same settings. A value is taken from the first of these that has it:

1. a flag of the command (`--bootstrap`, `--slots`, `--set worker.slots=4`),
2. the environment: prefix `MAINSPRING_`, levels separated by two underscores (`MAINSPRING_KAFKA__BOOTSTRAP`),
3. a file in `/run/secrets` (or `MAINSPRING_SECRETS_DIR`) that is named like the variable, for secrets,
4. `mainspring.toml` in the working directory, or the file that `--config` or `MAINSPRING_CONFIG` names,
5. the default.

A name that does not exist is an error wherever it stands, and all errors are told at once. `mainspring config show`
prints each value with its origin; secrets are hidden. In the environment, lists are written with commas, and mappings
as JSON or one variable per entry; an empty variable counts as not set.

```toml
# mainspring.toml
[kafka]
bootstrap = "kafka-1:9092,kafka-2:9092"

[queues.mail]
strategy = "aging"
tenant_weights = { acme = 3 }
```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One setting as the documentation shows it."""

    path: tuple[str, ...]
    type: str
    default: str
    text: str

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return env_name(self.path)


def settings_markdown() -> str:
    """The page of the settings: a table for each section."""
    parts = [_HEAD]
    for name, info in Settings.model_fields.items():
        model = _section(info)
        title = f"{name}.<name>" if dict_value(info.annotation) is not None else name
        parts.append(f"\n## `{title}`\n\n{_text(model.__doc__ or '')}\n")
        parts.append("| setting | type | default | what it does |\n|---|---|---|---|")
        parts += [f"| `{'.'.join(e.path)}` | {e.type} | {e.default} | {e.text} |" for e in _entries(name, info)]
    return "\n".join(parts) + "\n"


def env_example() -> str:
    """A file of environment variables, each with its meaning and commented out with its default."""
    lines = ["# Settings of Mainspring as environment variables. Generated from mainspring.settings; copy it to .env."]
    for name, info in Settings.model_fields.items():
        lines += ["", f"# --- {name}: {_text(_section(info).__doc__ or '')}"]
        for entry in _entries(name, info):
            lines += ["", f"# {entry.text.replace('`', '')}"]
            default = "" if entry.default == "none" else entry.default.strip("`")
            lines.append(f"#{entry.variable.replace('<NAME>', 'DEFAULT')}={default}")
    return "\n".join(lines) + "\n"


def _section(info: FieldInfo) -> type[BaseModel]:
    model = model_of(info.annotation) or model_of(dict_value(info.annotation))
    if model is None:
        raise TypeError(f"{info} is no section: every setting stands in one")
    return model


def _entries(section: str, info: FieldInfo) -> Iterator[Entry]:
    prefix = (section, "<name>") if dict_value(info.annotation) is not None else (section,)
    for name, field in _section(info).model_fields.items():
        path = (*prefix, name, "<name>") if dict_value(field.annotation) is not None else (*prefix, name)
        yield Entry(path=path, type=_type(field), default=_default(field), text=_text(field.description or ""))


def _type(field: FieldInfo) -> str:
    annotation: Any = dict_value(field.annotation) or field.annotation
    alternatives = [item for item in (get_args(annotation) or (annotation,)) if item is not type(None)]
    literals = [value for item in alternatives if get_origin(item) is Literal for value in get_args(item)]
    if get_origin(annotation) is Literal:
        literals = list(alternatives)
    if literals:
        return ", ".join(f"`{value}`" for value in literals)
    if get_origin(annotation) is tuple:
        return "list"
    return _bounds(_name(alternatives[0]), field)


def _name(kind: Any) -> str:
    names = {
        "str": "text",
        "int": "integer",
        "float": "number",
        "SecretStr": "secret",
        "SecretUrl": "URL",
        "Path": "path",
    }
    if get_origin(kind) is not None and get_args(kind):
        kind = get_args(kind)[0]
    return names.get(getattr(kind, "__name__", ""), "value")


def _bounds(name: str, field: FieldInfo) -> str:
    for item in field.metadata:
        low = getattr(item, "ge", None)
        high = getattr(item, "le", None)
        if low is not None and high is not None:
            return f"{name}, {low}–{high}"
    lows = [f"≥ {item.ge}" for item in field.metadata if getattr(item, "ge", None) is not None]
    lows += [f"> {item.gt}" for item in field.metadata if getattr(item, "gt", None) is not None]
    highs = [f"≤ {item.le}" for item in field.metadata if getattr(item, "le", None) is not None]
    return ", ".join([name, *lows, *highs])


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is None or value is PydanticUndefined:
        return "none"
    if isinstance(value, Secret | SecretStr):
        return f"`{value}`"
    if value == ():
        return "none"
    return f"`{','.join(value)}`" if isinstance(value, tuple) else f"`{value}`"


def _text(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
