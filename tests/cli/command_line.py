"""What a command of the command line did."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Cli", "Ran"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.out)


Cli = Callable[..., Ran]
