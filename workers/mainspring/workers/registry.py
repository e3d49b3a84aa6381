"""Which handlers a worker has. Imports nothing heavy: process children and the command line read it too."""

import importlib
from collections.abc import Iterator
from typing import Any

from mainspring.jobs.app import App, JobFunction
from mainspring.jobs.errors import DuplicateJobNameError, JobDefinitionError
from mainspring.jobs.handler import Handler
from mainspring.workers.foreign import told

__all__ = ["Registry", "load_object"]


class Registry:
    """Handlers by name, from any number of Apps."""

    def __init__(self, *sources: App | Handler | JobFunction[..., Any]) -> None:
        self._handlers: dict[str, Handler] = {}
        self._apps: list[App] = []
        for source in sources:
            self.add(source)

    @classmethod
    def load(cls, *references: str) -> "Registry":
        """The handlers of Apps given as `module:attribute`. Raises `JobDefinitionError` for what is no App."""
        registry = cls()
        for reference in references:
            found = load_object(reference)
            if not isinstance(found, App | Registry):
                raise JobDefinitionError(
                    f"{reference!r} is a {type(found).__name__}, not an App; name one as module:app"
                )
            registry.add(found)
        return registry

    def add(self, source: "App | Handler | JobFunction[..., Any] | Registry") -> None:
        """Adds a handler, or all handlers of an App. Raises `DuplicateJobNameError`."""
        if isinstance(source, Registry):
            for app in source.apps:
                self.add(app)
            handlers = list(source)
        elif isinstance(source, App):
            if source not in self._apps:
                self._apps.append(source)
            handlers = list(source.handlers.values())
        else:
            handlers = [source.handler if isinstance(source, JobFunction) else source]
        for handler in handlers:
            known = self._handlers.setdefault(handler.name, handler)
            if known is not handler and (known.reference is None or known.reference != handler.reference):
                raise DuplicateJobNameError(handler.name)
            if handler.app is not None and handler.app not in self._apps:
                self._apps.append(handler.app)

    def get(self, name: str) -> Handler | None:
        """The handler of a name, None if there is none."""
        return self._handlers.get(name)

    def prepare(self) -> None:
        """Checks every handler before the first job. Raises `JobDefinitionError` for the first that cannot work."""
        for handler in self._handlers.values():
            handler.prepare()

    @property
    def apps(self) -> tuple[App, ...]:
        """The Apps whose hooks have to run."""
        return tuple(self._apps)

    def __iter__(self) -> Iterator[Handler]:
        return iter(tuple(self._handlers.values()))

    def __len__(self) -> int:
        return len(self._handlers)


def load_object(reference: str) -> Any:
    """What `module:dotted.attribute` names.

    Raises `JobDefinitionError` that says which half was not found, or what the module's own code raised and where.
    """
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise JobDefinitionError(f"{reference!r} does not name an object; write module:attribute")
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise _broken(module_name, error) from error  # it exists and lacks one of its own
        raise JobDefinitionError(f"there is no module {module_name!r} for {reference!r}; is it on the path?") from error
    except (Exception, SystemExit) as error:
        raise _broken(module_name, error) from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise JobDefinitionError(f"module {module_name!r} has no {path!r}") from error
    return found


def _broken(module_name: str, error: BaseException) -> JobDefinitionError:
    return JobDefinitionError(f"module {module_name!r} cannot be imported:\n{told(error)}")
