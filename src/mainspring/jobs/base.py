"""Jobs as classes: a subclass is a dataclass whose fields are the payload."""

import dataclasses
import inspect
from abc import abstractmethod
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, ClassVar, dataclass_transform

from mainspring.jobs.errors import JobDefinitionError
from mainspring.jobs.models import ConcurrencyModel, JobPriority
from mainspring.jobs.options import OPTION_NAMES, JobOptions
from mainspring.jobs.policy import RetryPolicy

__all__ = ["AsyncJob", "BlockingJob", "CpuBoundJob", "Job", "options_of", "payload_fields"]


def _refuse_reserved(cls: type, own: dict[str, Any]) -> None:
    """A payload field with the name of an option would change its meaning without a word."""
    if cls.__module__ == __name__:
        return
    for name in own:
        if name in OPTION_NAMES or name in ("name", "model", "registered_handler"):
            raise JobDefinitionError(
                f"{cls.__qualname__}.{name}: {name!r} is a term of every job and cannot be a payload field; "
                f"rename the field, or drop the annotation to set the class's default"
            )


def _adopt_defaults(cls: type, own: dict[str, Any]) -> None:
    """Turns `priority = JobPriority.HIGH` in a class body into the default of the inherited field."""
    cls_name = cls.__dict__.get("name")
    if cls_name is None and cls.__module__ != __name__:
        cls.name = cls.__name__  # type: ignore[attr-defined]  # declared on Job, which derives from this mixin
    if cls.__dict__.get("registered_handler") is None:
        cls.registered_handler = None  # type: ignore[attr-defined]  # a subclass must be registered itself
    if cls.__module__ == __name__:
        return
    overridden = [name for name in OPTION_NAMES if name in cls.__dict__ and name not in own]
    for name in overridden:
        default = cls.__dict__[name]
        own[name] = Any
        setattr(cls, name, field(default=tuple(default) if isinstance(default, list) else default, kw_only=True))
    if overridden:
        cls.__annotations__ = own


@dataclass_transform(field_specifiers=(field,))
class _BecomesDataclass:
    """Makes a dataclass of every subclass, whether it says `@dataclass` or not."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__dataclass_fields__" in cls.__dict__:
            return  # `@dataclass(slots=True)` builds the class a second time
        own = dict(inspect.get_annotations(cls))
        _refuse_reserved(cls, own)
        _adopt_defaults(cls, own)
        factories = {name: value for name, value in cls.__dict__.items() if isinstance(value, dataclasses.Field)}
        dataclasses.dataclass(cls)
        # An explicit `@dataclass` on top processes the class again and must find the factories again.
        for name, value in factories.items():
            if value.default_factory is not dataclasses.MISSING:
                setattr(cls, name, value)


class Job(_BecomesDataclass):
    """What to run, as a value. Derive from `AsyncJob`, `BlockingJob` or `CpuBoundJob`.

    Annotated fields of a subclass are its arguments. The names below are the terms of the job: give them by keyword
    when making one, or without annotation in the class body as the class's default. `name` is the name it is registered
    under (the class's name, unless the class says otherwise).
    """

    name: ClassVar[str]
    model: ClassVar[ConcurrencyModel]
    registered_handler: ClassVar[Any] = None

    job_id: str | None = field(default=None, kw_only=True)
    queue: str | None = field(default=None, kw_only=True)
    priority: JobPriority | None = field(default=None, kw_only=True)
    tenant: str | None = field(default=None, kw_only=True)
    timeout: float | timedelta | None = field(default=None, kw_only=True)
    retry: RetryPolicy | None = field(default=None, kw_only=True)
    max_lost: int | None = field(default=None, kw_only=True)
    run_at: datetime | None = field(default=None, kw_only=True)
    delay: float | timedelta | None = field(default=None, kw_only=True)
    spread: float | timedelta | None = field(default=None, kw_only=True)
    deadline: datetime | None = field(default=None, kw_only=True)
    start_deadline: datetime | None = field(default=None, kw_only=True)
    tags: tuple[str, ...] | None = field(default=None, kw_only=True)
    depends_on: tuple[str, ...] | None = field(default=None, kw_only=True)
    schedule_id: str | None = field(default=None, kw_only=True)


class AsyncJob(Job):
    """A job that runs on the worker's event loop."""

    model = ConcurrencyModel.ASYNC

    @abstractmethod
    async def run(self) -> Any:
        """Does the work; what it returns is the result."""


class BlockingJob(Job):
    """A job that runs in a thread of the worker."""

    model = ConcurrencyModel.THREAD

    @abstractmethod
    def run_sync(self) -> Any:
        """Does the work; what it returns is the result."""


class CpuBoundJob(BlockingJob):
    """A blocking job that runs in a process of its own."""

    model = ConcurrencyModel.PROCESS


def options_of(job: Job) -> JobOptions:
    """The terms of a job object."""
    return JobOptions(**{name: getattr(job, name) for name in OPTION_NAMES})


def payload_fields(cls: type[Job]) -> tuple["dataclasses.Field[Any]", ...]:
    """The fields of a job class that are its arguments."""
    return tuple(f for f in dataclasses.fields(cls) if f.name not in OPTION_NAMES and f.init)
