"""Options that belong together, declared once as the fields of a dataclass and taken by a command as one value."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["grouped"]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a dataclass replaced by the fields of it, as Typer has to see them.

    The fields are options as parameters would be: `Annotated` with a `typer.Option`, each with a default, and offered
    in their order. What the user gives is handed to the command as one value of the dataclass.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options = [
        option
        for name, parameter in inspect.signature(command).parameters.items()
        for option in (_options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])])
    ]

    @wraps(command)
    def ungrouped(**given: Any) -> None:
        values = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for name, kind in groups.items()
        }
        command(**given, **values)

    ungrouped.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # what `inspect` reads first
    ungrouped.__annotations__ = {option.name: option.annotation for option in options}
    return ungrouped


def _options(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        assert field.default is not MISSING, f"{group.__name__}.{field.name} has no default: an option may be left out"
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
