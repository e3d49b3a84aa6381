"""`mainspring scheduler|worker|projector`: the processes of an installation."""

from typing import Annotated

import typer

from mainspring.cli.context import settings_of
from mainspring.cli.service import service


def projector(
    ctx: typer.Context,
    *,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Drop the view and fold the log from its beginning.")
    ] = False,
) -> None:
    """Keep the view (`view.url`) equal to the fold of the log; one projector per view."""
    settings = settings_of(ctx)
    from dataclasses import replace

    from mainspring.cli.roles import projector_health
    from mainspring.processors.projector import Projector

    with service(settings, "projector") as (stop, health):
        running = Projector(replace(settings.projector_config(), rebuild=rebuild))
        projector_health(health, running)
        running.run(stop.event)
