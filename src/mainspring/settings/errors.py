"""What is wrong with the settings, all of it at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from mainspring.schemas.errors import MainspringError

__all__ = ["Problem", "SettingsError"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong: where it was set (`origin`), which setting, why, and what to do."""

    path: str
    message: str
    origin: str = ""

    def __str__(self) -> str:
        where = f" ({self.origin})" if self.origin else ""
        return f"{self.path}{where}: {self.message}"


class SettingsError(MainspringError, ValueError):
    """The settings cannot be used; `problems` lists every reason, so that one look is enough to mend them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{count} setting{'s are' if count != 1 else ' is'} wrong:"
        super().__init__("\n".join([head, *(f"  - {problem}" for problem in self.problems)]))
