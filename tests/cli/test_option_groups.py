"""A group of options is one value for the command, and options as any others for who types them."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from mainspring.cli.option_groups import grouped


@dataclass(frozen=True, kw_only=True)
class Size:
    width: Annotated[int, typer.Option(help="How wide.", min=1)] = 1
    heights: Annotated[list[int] | None, typer.Option("--height", help="How high.")] = None


def app_with_a_group(taken: list[object]) -> typer.Typer:
    @grouped
    def draw(
        ctx: typer.Context,
        name: Annotated[str, typer.Argument()],
        *,
        before: bool = False,
        size: Size,
        after: bool = False,
    ) -> None:
        """Draw it."""
        taken.extend((ctx.info_name, name, before, size, after))

    app = typer.Typer()
    app.command()(draw)
    return app


def test_the_options_of_a_group_are_taken_as_one_value_beside_all_others() -> None:
    taken: list[object] = []

    ran = CliRunner().invoke(app_with_a_group(taken), ["it", "--height", "2", "--after", "--height", "3"])

    assert ran.exit_code == 0, ran.output
    assert taken[1:] == ["it", False, Size(width=1, heights=[2, 3]), True]


def test_a_value_that_its_option_refuses_does_not_reach_the_command() -> None:
    taken: list[object] = []

    ran = CliRunner().invoke(app_with_a_group(taken), ["it", "--width", "0"])

    assert (ran.exit_code, taken) == (2, [])


def test_the_options_of_a_group_stand_where_the_command_has_it() -> None:
    command = typer.main.get_command(app_with_a_group([]))

    assert command.help == "Draw it."
    assert [parameter.opts[0] for parameter in command.params][:5] == [
        "name",
        "--before",
        "--width",
        "--height",
        "--after",
    ]


def test_an_option_of_a_group_that_may_not_be_left_out_is_refused() -> None:
    @dataclass(frozen=True)
    class Bare:
        width: Annotated[int, typer.Option()]

    def draw(*, size: Bare) -> None:
        """Never reached."""

    with pytest.raises(AssertionError, match=r"Bare\.width has no default"):
        grouped(draw)
