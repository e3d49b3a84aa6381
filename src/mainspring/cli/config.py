"""`mainspring config`: what is set, to what, and by whom."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from mainspring.cli.context import settings_of
from mainspring.cli.output import Column, Output, OutputOption, print_json, print_table, warn

if TYPE_CHECKING:
    from mainspring.settings import Settings

app = typer.Typer(help="Look at the settings.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look at the settings."""


@app.command()
def show(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Print every setting with its value and where it comes from; secrets are hidden."""
    settings = settings_of(ctx)
    rows = list(_rows(settings))
    if output is Output.JSON:
        print_json(rows)
    else:
        columns = (Column(head="SETTING"), Column(head="VALUE", fold=True), Column(head="ORIGIN"))
        print_table(columns, ((row["setting"], _shown(row["value"]), _origin(row["origin"])) for row in rows))
    for text in settings.warnings():
        warn(text)


def _rows(settings: "Settings") -> Iterator[dict[str, Any]]:
    from mainspring.settings.sources import env_name

    for path, value in settings.values():
        yield {
            "setting": ".".join(path),
            "value": value,
            "origin": settings.origin(path),
            "variable": env_name(path),
        }


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _origin(origin: str) -> Any:
    from rich.text import Text

    return Text(origin, style="dim" if origin == "default" else "green")
