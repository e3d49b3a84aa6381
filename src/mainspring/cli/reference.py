"""`docs/cli.md`, written from the commands themselves."""

import re
from collections.abc import Iterator
from typing import Any

import typer
import typer.main

from mainspring.cli.app import build, forwarded
from mainspring.cli.errors import ExitCode

__all__ = ["cli_markdown"]

_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILURE: "it failed; the message says what, why and what to do next",
    ExitCode.USAGE: "the command or the settings are wrong",
    ExitCode.NOT_FOUND: "there is no such job, schedule, topic or process",
    ExitCode.REJECTED: "the scheduler refused it, or it conflicts with what is there",
    ExitCode.TIMEOUT: "`--wait` or `--timeout` ended before the job did; the job goes on",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}
_HEAD = """# The command line

<!-- Generated from mainspring.cli; do not edit. -->

Data is printed on stdout, everything else on stderr. Commands that print data take `-o json`: one JSON document, times
in ISO 8601 UTC, names that do not change; commands that follow something print one JSON document a line. Tables show
local times with their zone. Colours and animation appear on a terminal only, and never with `NO_COLOR`.

Durations are written like `10s`, `5m`, `1h30m`, `250ms` or `2d`. The options of the root (`--config`, `--bootstrap`,
`--prefix`, `--set`) may stand anywhere in a command. Every setting can be given by [environment or file](settings.md)
as well.

## Exit codes

| code | meaning |
|---|---|
"""


def cli_markdown() -> str:
    """The page of the command line: exit codes, then every command with its arguments and options."""
    parts = [_HEAD + "\n".join(f"| {int(code)} | {text} |" for code, text in _MEANINGS.items()) + "\n"]
    parts += _page("mainspring", typer.main.get_command(build(forward=False)))
    for name, app in forwarded():
        parts += _page(f"mainspring {name}", typer.main.get_command(app))
    return "\n".join(parts)


def _page(path: str, command: Any, depth: int = 2) -> Iterator[str]:
    yield f"{'#' * depth} `{path}`\n"
    yield f"{_text(command.help or '')}\n"
    rows = [row for row in map(_row, command.params) if row]
    if rows:
        yield "| | default | |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from _page(f"{path} {name}", command.commands[name], min(depth + 1, 4))


def _row(parameter: Any) -> str | None:
    if parameter.name in {"install_completion", "show_completion", "help"}:
        return None
    is_argument = parameter.param_type_name == "argument"
    name = (parameter.metavar or str(parameter.name).upper()) if is_argument else ", ".join(parameter.opts)
    if getattr(parameter, "secondary_opts", None):
        name += " / " + ", ".join(parameter.secondary_opts)
    metavar = (
        "" if is_argument or getattr(parameter, "is_flag", False) or not parameter.metavar else f" {parameter.metavar}"
    )
    default = "required" if parameter.required else _default(parameter.default)
    return f"| `{name}{metavar}` | {default} | {_text(parameter.help or '')} |"


def _default(value: Any) -> str:
    if (
        value is None
        or isinstance(value, bool)
        or value in ([], "")
        or callable(value)
        or "Sentinel" in type(value).__name__
    ):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _text(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\[/?[a-z ]*\]", "", text)).strip().replace("|", "\\|")
