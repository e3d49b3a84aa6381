"""An App: the handlers of one code base, and what they need around them."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import update_wrapper
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from mainspring.jobs.base import Job
from mainspring.jobs.context import JobContext
from mainspring.jobs.errors import DuplicateJobNameError, JobDefinitionError
from mainspring.jobs.handler import Handler, for_class, for_function
from mainspring.jobs.models import ConcurrencyModel, JobPriority
from mainspring.jobs.options import NO_OPTIONS, JobOptions, options_of
from mainspring.jobs.payload import JSON, PayloadCodec
from mainspring.jobs.policy import RetryPolicy

__all__ = ["App", "ContextJobFunction", "Hook", "JobCall", "JobFunction"]

P = ParamSpec("P")
R = TypeVar("R")
J = TypeVar("J", bound=Job)
H = TypeVar("H", bound="Hook")

Hook = Callable[[], None] | Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCall:
    """A job made from a function: submit it like a job object."""

    handler: Handler
    arguments: Mapping[str, Any]
    options: JobOptions

    def with_options(self, **options: Any) -> "JobCall":
        """The same call under other terms; the names are those of `JobOptions`. Raises `UnknownOptionError`."""
        return replace(self, options=options_of(**options).over(self.options))


class JobFunction(Generic[P, R]):
    """A function that is a handler too. Calling it runs it here and now, as a test wants; `job()` makes a job of it."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], handler: Handler) -> None:
        update_wrapper(self, function)
        self._function = function
        self.handler = handler

    @property
    def name(self) -> str:
        """Registered name."""
        return self.handler.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself."""
        return self._function(*args, **kwargs)

    def job(self, *args: P.args, **kwargs: P.kwargs) -> JobCall:
        """A job that will call the function with these arguments. Raises `PayloadMismatchError` if they do not fit."""
        arguments = self.handler.signature.bind(args, kwargs)
        return JobCall(handler=self.handler, arguments=arguments, options=NO_OPTIONS)

    def __repr__(self) -> str:
        return f"<job {self.name!r} ({self.handler.model.name})>"


class ContextJobFunction(JobFunction[P, R]):
    """A handler whose first parameter is the `JobContext`: a call gives one, and a job has no place for it."""

    if TYPE_CHECKING:
        # A job is made of what a worker does not give: it takes less than a call.
        def __call__(self, context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> R:  # type: ignore[override]  # see above
            """Calls the function itself."""


class _Registration(Protocol):
    """What `App.job(…)` with terms gives: the decorator that registers by them."""

    @overload
    def __call__(self, function: Callable[Concatenate[JobContext, P], R], /) -> ContextJobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...


class App:
    """Registers handlers by name, and hooks that run before the first and after the last job of a process.

    `state` is a place for what the hooks make (a connection pool); each process, children included, has its own.
    """

    def __init__(self, name: str, *, codec: PayloadCodec = JSON) -> None:
        self.name = name
        self.codec = codec
        self.state = SimpleNamespace()
        self._handlers: dict[str, Handler] = {}
        self._on_start: list[Hook] = []
        self._on_stop: list[Hook] = []

    def __repr__(self) -> str:
        many = len(self._handlers)
        return f"App({self.name!r}, {many} handler{'' if many == 1 else 's'})"

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Handlers by name, read only."""
        return MappingProxyType(self._handlers)

    @overload
    def job(self, function: Callable[Concatenate[JobContext, P], R], /) -> ContextJobFunction[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(
        self,
        /,
        *,
        name: str | None = None,
        model: ConcurrencyModel | None = None,
        queue: str | None = None,
        priority: JobPriority | None = None,
        timeout: float | timedelta | None = None,
        retry: RetryPolicy | None = None,
        tenant: str | None = None,
        max_lost: int | None = None,
        tags: tuple[str, ...] | None = None,
        spread: float | timedelta | None = None,
    ) -> _Registration: ...
    def job(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        model: ConcurrencyModel | None = None,
        **options: Any,
    ) -> Any:
        """Registers a function: `async def` runs on the event loop, `def` in a thread, `model=PROCESS` in a process.

        The other keywords are the terms of its jobs, unless a job says its own. Raises `JobDefinitionError`.
        """

        def register(function: Callable[..., Any]) -> JobFunction[..., Any]:
            defaults = options_of(**options) if options else NO_OPTIONS
            handler = for_function(function, name=name, model=model, defaults=defaults, codec=self.codec, app=self)
            self.add(handler)
            kind = JobFunction if handler.context_name is None else ContextJobFunction
            return kind(function, handler)

        return register if function is None else register(function)

    @overload
    def register(self, cls: type[J], /) -> type[J]: ...
    @overload
    def register(self, /, *, name: str | None = None) -> Callable[[type[J]], type[J]]: ...
    def register(self, cls: Any = None, /, *, name: str | None = None) -> Any:
        """Registers a job class, as a decorator or by a call. `name` overrides the name the class has itself."""

        def add(cls: Any) -> Any:
            if not (isinstance(cls, type) and issubclass(cls, Job)):
                raise JobDefinitionError(f"{cls!r} is no job class; functions are registered with @app.job")
            handler = for_class(cls, name=name, codec=self.codec, app=self)
            self.add(handler)
            cls.name = handler.name
            cls.registered_handler = handler
            return cls

        return add if cls is None else add(cls)

    def add(self, handler: Handler) -> None:
        """Registers a handler. Raises `DuplicateJobNameError`."""
        known = self._handlers.get(handler.name)
        if known is not None and (known.reference is None or known.reference != handler.reference):
            raise DuplicateJobNameError(handler.name)
        self._handlers[handler.name] = handler

    def on_start(self, hook: H) -> H:
        """Registers a hook (`def` or `async def`) that runs in every process before its first job, in this order."""
        self._on_start.append(hook)
        return hook

    def on_stop(self, hook: H) -> H:
        """Registers a hook that runs in every process after its last job, in the reverse order."""
        self._on_stop.append(hook)
        return hook

    def start_hooks(self) -> Iterator[Hook]:
        """Hooks in the order in which they start."""
        return iter(tuple(self._on_start))

    def stop_hooks(self) -> Iterator[Hook]:
        """Hooks in the order in which they stop."""
        return reversed(tuple(self._on_stop))
