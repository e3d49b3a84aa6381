"""What every command shares: where the settings come from, loaded once when they are first needed."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["Globals", "globals_of", "hoist", "settings_of"]

# Options of the root that may also stand behind the command, as in `mainspring job list --bootstrap kafka:9092`.
_WITH_VALUE = frozenset({"--config", "--bootstrap", "--prefix", "--set"})


@dataclass(slots=True, kw_only=True)
class Globals:
    """The root's options."""

    config: Path | None = None
    warnings: bool = True
    flags: dict[str, object] = field(default_factory=dict)
    _settings: "Settings | None" = None

    def settings(self, **flags: object) -> "Settings":
        """The settings, with a command's own flags (dotted names) on top; None means not given."""
        if self._settings is None or flags:
            from mainspring.settings import Settings

            given = {name: value for name, value in flags.items() if value is not None}
            self._settings = Settings.load(flags=self.flags | given, config=self.config)
        return self._settings

    def set(self, name: str, value: object) -> None:
        """Set one more flag, and forget the settings that were loaded without it."""
        self.flags[name] = value
        self._settings = None


def globals_of(ctx: typer.Context) -> Globals:
    """The root's options of this invocation."""
    found = ctx.find_root().obj
    return found if isinstance(found, Globals) else Globals()


def settings_of(ctx: typer.Context, **flags: object) -> "Settings":
    """The settings of this invocation, with a command's own flags on top."""
    return globals_of(ctx).settings(**flags)


def hoist(arguments: list[str]) -> list[str]:
    """Move the root's options to the front, so that they may stand anywhere before a `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    front: list[str] = []
    rest: list[str] = []
    index = 0
    while index < end:
        argument = arguments[index]
        if argument in _WITH_VALUE:
            front += arguments[index : min(index + 2, end)]
            index += 2
            continue
        (front if argument.partition("=")[0] in _WITH_VALUE else rest).append(argument)
        index += 1
    return front + rest + arguments[end:]
