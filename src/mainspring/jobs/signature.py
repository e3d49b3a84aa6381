"""What arguments a handler takes: the typed bridge between a payload and a call."""

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_json

from mainspring.jobs.context import JobContext
from mainspring.jobs.errors import HandlerSignatureError, PayloadMismatchError
from mainspring.jobs.payload import JSON, EncodingError, PayloadCodec, to_tree

__all__ = ["Parameter", "Signature", "of_function"]

SHOWN_CHARS = 80
"""So much of a wrong value is quoted."""
_EMPTY_PAYLOADS = (b"", b"{}")


class Parameter(NamedTuple):
    """One argument that a payload may carry."""

    name: str
    annotation: Any
    default: Any = dataclasses.MISSING
    default_factory: Any = dataclasses.MISSING


class Signature:
    """The arguments of a handler, by name.

    A payload is an object whose members are the arguments. Reading one is strict (the text "10" is no integer), with
    the usual notations for what JSON lacks: dates, enums, UUIDs, bytes, dataclasses.
    """

    def __init__(self, name: str, parameters: Callable[[], Sequence[Parameter]], *, takes_rest: bool = False) -> None:
        self._name = name
        self._parameters = parameters
        self._takes_rest = takes_rest
        self._adapter: TypeAdapter[Any] | None = None
        self._names: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Resolves the annotations. Raises `HandlerSignatureError` for one that no payload can fill."""
        if self._adapter is not None:
            return
        parameters = list(self._parameters())
        config = ConfigDict(extra="allow" if self._takes_rest else "forbid", arbitrary_types_allowed=False)
        try:
            self._adapter = TypeAdapter(_arguments_class(self._name, parameters, config))
        except (PydanticUserError, NameError, TypeError) as error:
            raise HandlerSignatureError(
                f"job {self._name!r}: a parameter cannot be filled from a payload: {error}"
            ) from error
        self._names = tuple(parameter.name for parameter in parameters)

    def load(self, payload: bytes, codec: PayloadCodec) -> dict[str, Any]:
        """The arguments in a payload. Raises `PayloadMismatchError`, which names every wrong field."""
        self.prepare()
        if not self._names and payload in _EMPTY_PAYLOADS:
            return {}
        assert self._adapter is not None  # prepare() made it
        try:
            if codec is not JSON:
                payload = to_json(codec.decode(payload or codec.encode({})))
            arguments = self._adapter.validate_json(payload or b"{}", strict=True)
        except ValidationError as error:
            raise PayloadMismatchError(self._name, _by_field(error)) from None
        except ValueError as error:
            raise PayloadMismatchError(self._name, {"": f"cannot be read as {codec.content_type}: {error}"}) from error
        return dict(vars(arguments))

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Any]:
        """Arguments by name, as the tree a codec writes. Raises `PayloadMismatchError` before anything is sent."""
        self.prepare()
        if len(args) > len(self._names):
            raise PayloadMismatchError(self._name, {"": f"takes {len(self._names)} arguments, {len(args)} were given"})
        named = dict(zip(self._names, args, strict=False))
        twice = named.keys() & kwargs.keys()
        if twice:
            raise PayloadMismatchError(self._name, dict.fromkeys(sorted(twice), "is given twice"))
        given = {**named, **kwargs}
        assert self._adapter is not None  # prepare() made it
        try:
            arguments = self._adapter.validate_python(given)
        except ValidationError as error:
            raise PayloadMismatchError(self._name, _by_field(error)) from None
        try:
            # Only what the caller gave: a default stays the handler's, also when it changes before the job runs.
            return {name: to_tree(getattr(arguments, name)) for name in given}
        except EncodingError as error:
            raise PayloadMismatchError(self._name, {error.field: error.problem}) from error


def of_function(name: str, function: Callable[..., Any]) -> tuple[Signature, str | None]:
    """The signature of a function, and the name of its `JobContext` parameter if it has one."""
    context_name: str | None = None
    raw = inspect.signature(function).parameters.values()
    for parameter in raw:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise HandlerSignatureError(
                f"job {name!r}: parameter {parameter.name!r} has no name in a payload; make it a named parameter"
            )
        if parameter.annotation in (JobContext, "JobContext", "jobs.JobContext"):
            context_name = parameter.name
    kept = [p for p in raw if p.kind is not p.VAR_KEYWORD and p.name != context_name]

    def parameters() -> list[Parameter]:
        hints = typing.get_type_hints(function, include_extras=True)
        missing = dataclasses.MISSING
        return [Parameter(p.name, hints.get(p.name, Any), missing if p.default is p.empty else p.default) for p in kept]

    return Signature(name, parameters, takes_rest=any(p.kind is p.VAR_KEYWORD for p in raw)), context_name


def _arguments_class(name: str, parameters: Sequence[Parameter], config: ConfigDict) -> type:
    fields: list[tuple[str, Any, Any]] = []
    for name_, annotation, default, factory in parameters:
        # A mutable default (a list, say) is legal for a function and not for a dataclass.
        if default is not dataclasses.MISSING and factory is dataclasses.MISSING:
            fields.append((name_, annotation, dataclasses.field(default_factory=partial(_same, default))))
        elif factory is not dataclasses.MISSING:
            fields.append((name_, annotation, dataclasses.field(default_factory=factory)))
        else:
            fields.append((name_, annotation, dataclasses.field()))
    return dataclasses.make_dataclass(
        f"ArgumentsOf_{''.join(c if c.isalnum() else '_' for c in name)}",
        fields,
        kw_only=True,
        namespace={"__pydantic_config__": config},
    )


def _same(value: Any) -> Any:
    return value


def _by_field(error: ValidationError) -> dict[str, str]:
    wrong: dict[str, str] = {}
    for line in error.errors(include_url=False, include_context=False):
        path = ""
        for part in line["loc"]:
            path += f"[{part}]" if isinstance(part, int) else (f".{part}" if path else str(part))
        shown = repr(line["input"])
        if len(shown) > SHOWN_CHARS:
            shown = shown[:SHOWN_CHARS] + "…"
        given = "" if line["type"] == "missing" else f" (given {shown})"
        wrong[path] = line["msg"] + given
    return wrong
