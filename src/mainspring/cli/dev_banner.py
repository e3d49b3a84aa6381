"""What `mainspring dev` says when everything serves: the jobs there are, and commands that work as they stand."""

import inspect
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainspring.cli.output import escape, stderr

if TYPE_CHECKING:
    from mainspring.jobs.handler import Handler
    from mainspring.settings import Settings
    from mainspring.workers import Registry

__all__ = ["show_banner"]

_SHOWN_JOBS = 8
_VALUES: dict[Any, Any] = {str: "you", int: 1, float: 1.0, bool: True}


def show_banner(settings: "Settings", registry: "Registry", config: Path | None, took_s: float) -> None:
    """Print it on stderr; `config` is the settings file that leads other commands here."""
    handlers = sorted(registry, key=lambda handler: handler.name)
    where = escape(settings.kafka.bootstrap)
    these = "this job" if len(handlers) == 1 else "these jobs"
    lines = [f"\n[bold]Mainspring is ready[/] after {took_s:.1f} s, on Kafka at {where}, with {these}:"]
    lines += [f"  {escape(_call(handler))}" for handler in handlers[:_SHOWN_JOBS]]
    if len(handlers) > _SHOWN_JOBS:
        lines.append(f"  … and {len(handlers) - _SHOWN_JOBS} more")
    lines.append("In another terminal:")
    if config is not None:
        lines.append(f"  export MAINSPRING_CONFIG={escape(shlex.quote(str(config)))}")
    if handlers:
        lines.append(f"  mainspring job submit {escape(_example(handlers))} --wait")
    lines += ["  mainspring job list", "Ctrl-C stops everything.\n"]
    for line in lines:
        # No width breaks a line that is to be copied.
        stderr().print(line, soft_wrap=True)


def _call(handler: "Handler") -> str:
    given = ", ".join(
        name if default is inspect.Parameter.empty else f"{name}={default!r}"
        for name, default, _ in _parameters(handler)
    )
    return f"{handler.name}({given})"


def _example(handlers: "list[Handler]") -> str:
    """The job with the fewest arguments that must be given, but with one to show how."""
    by_effort = sorted(handlers, key=lambda handler: (len(_needed(handler)) == 0, len(_needed(handler)), handler.name))
    handler = by_effort[0]
    needed = _needed(handler) or [(name, kind) for name, _, kind in _parameters(handler)[:1]]
    payload = json.dumps({name: _VALUES.get(kind, "…") for name, kind in needed}, ensure_ascii=False)
    return shlex.quote(handler.name) + (f" --payload {shlex.quote(payload)}" if needed else "")


def _needed(handler: "Handler") -> list[tuple[str, Any]]:
    return [(name, kind) for name, default, kind in _parameters(handler) if default is inspect.Parameter.empty]


def _parameters(handler: "Handler") -> list[tuple[str, Any, Any]]:
    """Name, default and type of each argument that a payload may carry."""
    if isinstance(handler.target, type):
        from mainspring.jobs.base import payload_fields

        payload: set[str] | None = {field.name for field in payload_fields(handler.target)}
    else:
        payload = None
    return [
        (each.name, each.default, each.annotation)
        for each in inspect.signature(handler.target).parameters.values()
        if each.name != handler.context_name
        and each.kind is not each.VAR_KEYWORD
        and (payload is None or each.name in payload)
    ]
