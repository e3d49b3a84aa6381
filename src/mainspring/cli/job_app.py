"""The job that a name stands for in an app: with what it declares, and its payload checked before anything is sent."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.output import escape, note

if TYPE_CHECKING:
    from mainspring.jobs.handler import Handler

__all__ = ["job_of"]

_UNAPPLIED = "[dim]no --app: options that the job declares (time-out, retries, queue, …) are not applied[/]"


def job_of(
    name: str, arguments: Mapping[str, Any] | None, given: Sequence[str], set_: Sequence[str]
) -> "Handler | str":
    """The handler of the name in the apps that were `given`, else in those that are `set_`; else the bare name.

    Raises `CliError` for a name that a given app lacks, and `PayloadMismatchError` for arguments that do not fit.
    """
    references = given or set_
    if not references:
        note(_UNAPPLIED)
        return name
    from mainspring.jobs.payload import JSON
    from mainspring.workers import Registry

    # The entry point's own directory is on the path, the user's is not.
    sys.path.insert(0, str(Path.cwd()))
    try:
        registry = Registry.load(*references)
    except (ImportError, ValueError, TypeError) as error:
        if given:
            raise
        why = escape(str(error).splitlines()[-1].strip())
        note(f"[dim]worker.app cannot be imported here ({why}): options that the job declares do not hold[/]")
        return name
    handler = registry.get(name)
    if handler is None:
        known = ", ".join(sorted(each.name for each in registry)) or "none"
        if given:
            raise CliError(
                f"{', '.join(references)} registers no job {name!r}.",
                hint=f"It has: {known}.",
                code=ExitCode.USAGE,
            )
        note(f"[dim]worker.app registers no job {escape(repr(name))} (it has: {escape(known)}); it is sent as it is[/]")
        return name
    handler.signature.load(json.dumps(arguments or {}).encode(), JSON)
    return handler
