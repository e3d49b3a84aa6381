"""Source text under construction: lines, indentation, fresh names, and the objects that the text refers to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Source"]


class Source:
    """Builds the text of one generated function."""

    def __init__(self, signature: str) -> None:
        self._lines = [f"def {signature}:"]
        self._depth = 1
        self._fresh = 0
        self._objects: dict[str, Any] = {}

    def add(self, *lines: str) -> None:
        """Appends lines at the present indentation."""
        self._lines += ["    " * self._depth + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Appends `head` and indents what is added inside."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, hint: str) -> str:
        """A local variable that no other part of the text uses."""
        self._fresh += 1
        return f"{hint}{self._fresh}"

    def refer(self, hint: str, thing: Any) -> str:
        """A name by which the text can reach `thing`; the same one for the same object."""
        for known, other in self._objects.items():
            if other is thing:
                return known
        name = f"{hint.upper()}_{len(self._objects)}"
        self._objects[name] = thing
        return name

    @property
    def text(self) -> str:
        """The source text so far."""
        return "\n".join(self._lines) + "\n"

    def compile(self, label: str) -> Callable[..., Any]:
        """Compiles the text. `label` stands for the file name in tracebacks."""
        namespace = dict(self._objects)
        name = self._lines[0].removeprefix("def ").split("(")[0]
        exec(compile(self.text, f"<mainspring {label}>", "exec"), namespace)  # noqa: S102 - text built from our own schema files
        function: Callable[..., Any] = namespace[name]
        return function
