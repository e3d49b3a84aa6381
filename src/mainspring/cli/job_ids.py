"""Job ids as people give them: whole, or so much of the beginning that only one job has it."""

from typing import TYPE_CHECKING

from mainspring.cli.connect import open_client
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.output import escape, note
from mainspring.cli.view_source import open_view

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["whole_id"]

_SHORTEST = 4
_DRAWN = 36
"""Characters of an id that Mainspring draws: one so long is whole."""
_SHOWN = 5
_REFUSALS = frozenset({"CommandRejected", "ReportRefused"})


def whole_id(settings: "Settings", given: str) -> str:
    """The id of the one job in the view whose id begins so; `given` itself where it is an id or begins none.

    A job with exactly this id always wins, also one that only the log knows. Raises `CliError` when several begin so,
    or when it is too short to be the beginning of one.
    """
    if len(given) >= _DRAWN:
        return given
    try:
        view = open_view(settings)
    except (CliError, ModuleNotFoundError):
        return given
    with view:
        if view.get(given) is not None:
            return given
        found = view.ids_starting(given, _SHOWN)
    if not found:
        return given
    with open_client(settings) as client:
        if any(type(entry.event).__name__ not in _REFUSALS for entry in client.history(given)):
            return given
    if len(given) < _SHORTEST:
        raise CliError(
            f"There is no job {given!r}, and it is too short to be the beginning of an id.",
            hint=f"Give at least {_SHORTEST} characters of the id.",
            code=ExitCode.NOT_FOUND,
        )
    if len(found) > 1:
        more = " …" if len(found) == _SHOWN else ""
        raise CliError(
            f"Several jobs have an id that begins with {given!r}.",
            why=f"{', '.join(found)}{more}",
            hint="Give more of it.",
            code=ExitCode.USAGE,
        )
    note(f"[dim]{escape(given)}… is {escape(found[0])}[/]")
    return found[0]
