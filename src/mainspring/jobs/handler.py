"""A handler: the code behind a job name."""

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mainspring.jobs import signature
from mainspring.jobs.base import AsyncJob, BlockingJob, CpuBoundJob, Job, payload_fields
from mainspring.jobs.context import JobContext
from mainspring.jobs.errors import (
    JobDefinitionError,
    PayloadMismatchError,
    ResultNotEncodableError,
    ResultTooLargeError,
)
from mainspring.jobs.models import ConcurrencyModel
from mainspring.jobs.options import NO_OPTIONS, JobOptions
from mainspring.jobs.payload import JSON, EncodingError, PayloadCodec, to_tree
from mainspring.schemas.bounds import RESULT_MAX_BYTES

if TYPE_CHECKING:
    from mainspring.jobs.app import App

__all__ = ["Handler", "for_class", "for_function"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """What a worker needs to run the jobs of one name.

    Attributes:
        name: registered name.
        model: where it runs.
        target: the function, or the job class.
        reference: `module:qualified.name` under which a process child finds it; None when it cannot be imported.
        defaults: terms of jobs that do not say their own.
        app: whose start and stop hooks belong to it.
    """

    name: str
    model: ConcurrencyModel
    target: Callable[..., Any]
    signature: signature.Signature
    context_name: str | None = None
    reference: str | None = None
    defaults: JobOptions = NO_OPTIONS
    codec: PayloadCodec = JSON
    app: "App | None" = None

    def prepare(self) -> None:
        """Checks what can be checked before the first job. Raises `JobDefinitionError`."""
        self.signature.prepare()
        if self.model is ConcurrencyModel.PROCESS and self.reference is None:
            raise JobDefinitionError(
                f"job {self.name!r} runs in a process of its own, which imports it; define it at the top of a module"
            )

    def open(self, payload: bytes, content_type: str, context: JobContext) -> Callable[[], Any]:
        """The call that a payload asks for. Raises `PayloadMismatchError`."""
        arguments = self.signature.load(payload, self._codec_for(content_type))
        if isinstance(self.target, type):
            job = self.target(**arguments)
            return job.run if self.model is ConcurrencyModel.ASYNC else job.run_sync  # type: ignore[no-any-return]
        if self.context_name is not None:
            arguments[self.context_name] = context
        return partial(self.target, **arguments) if arguments else self.target

    def encode_result(self, value: Any) -> bytes | None:
        """A result as bytes, None for None. Raises `ResultNotEncodableError` or `ResultTooLargeError`."""
        if value is None:
            return None
        try:
            data = self.codec.encode(value if isinstance(value, str | int) else to_tree(value))
        except EncodingError as error:
            raise ResultNotEncodableError(
                f"job {self.name!r} returned what {self.codec.content_type} cannot hold: {error}"
            ) from error
        if type(data) is not bytes:
            raise ResultNotEncodableError(
                f"the codec for {self.codec.content_type} of job {self.name!r} made a {type(data).__name__} "
                "of its result; it must make bytes"
            )
        if len(data) > RESULT_MAX_BYTES:
            raise ResultTooLargeError(len(data), RESULT_MAX_BYTES)
        return data

    def _codec_for(self, content_type: str) -> PayloadCodec:
        for codec in (self.codec, JSON):
            if codec.content_type == content_type:
                return codec
        raise PayloadMismatchError(
            self.name, {"": f"is {content_type}, which no codec of this worker reads; give the App that codec"}
        )


def for_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    model: ConcurrencyModel | None = None,
    defaults: JobOptions | None = None,
    codec: PayloadCodec = JSON,
    app: "App | None" = None,
) -> Handler:
    """The handler of a function: `async def` runs on the event loop, `def` in a thread unless `model` says PROCESS."""
    name = name or function.__name__
    is_async = inspect.iscoroutinefunction(function)
    model = model or (ConcurrencyModel.ASYNC if is_async else ConcurrencyModel.THREAD)
    if is_async != (model is ConcurrencyModel.ASYNC):
        kind = "async def" if is_async else "def"
        raise JobDefinitionError(f"job {name!r} is a `{kind}` and cannot run as {model.name}; change one of the two")
    arguments, context_name = signature.of_function(name, function)
    return Handler(
        name=name,
        model=model,
        target=function,
        signature=arguments,
        context_name=context_name,
        reference=_reference(function),
        defaults=defaults or NO_OPTIONS,
        codec=codec,
        app=app,
    )


def for_class(
    cls: type[Job], *, name: str | None = None, codec: PayloadCodec = JSON, app: "App | None" = None
) -> Handler:
    """The handler of a job class; its model is that of its base class."""
    if not issubclass(cls, AsyncJob | BlockingJob):
        raise JobDefinitionError(f"{cls.__qualname__} must derive from AsyncJob, BlockingJob or CpuBoundJob")
    method = "run" if issubclass(cls, AsyncJob) else "run_sync"
    if getattr(getattr(cls, method), "__isabstractmethod__", False):
        raise JobDefinitionError(f"{cls.__qualname__} must define {method}()")
    if inspect.iscoroutinefunction(getattr(cls, method)) != (method == "run"):
        raise JobDefinitionError(f"{cls.__qualname__}.{method}() must be {'async def' if method == 'run' else 'def'}")

    def parameters() -> list[signature.Parameter]:
        hints = typing.get_type_hints(cls, include_extras=True)
        return [signature.Parameter(f.name, hints[f.name], f.default, f.default_factory) for f in payload_fields(cls)]

    name = name or cls.name
    return Handler(
        name=name,
        model=ConcurrencyModel.PROCESS if issubclass(cls, CpuBoundJob) else cls.model,
        target=cls,
        signature=signature.Signature(name, parameters),
        reference=_reference(cls),
        codec=codec,
        app=app,
    )


def _reference(target: Callable[..., Any]) -> str | None:
    qualified = getattr(target, "__qualname__", "")
    return None if not qualified or "<" in qualified else f"{target.__module__}:{qualified}"
