"""The demo from its first line to its exit code."""

import json
from pathlib import Path

from mainspring.cli.connect import open_client
from mainspring.cli.context import Globals
from mainspring.cli.demo.audit import audit, wait_for_view
from mainspring.cli.demo.board import Board
from mainspring.cli.demo.director import SCHEDULERS, Director, Kill
from mainspring.cli.demo.fleet import Fleet
from mainspring.cli.demo.interrupts import interruptible
from mainspring.cli.demo.owners import Owners
from mainspring.cli.demo.plan import Planned, make_plan, write_plan
from mainspring.cli.demo.screen import Screen
from mainspring.cli.demo.summary import Outcome, print_plan, print_summary
from mainspring.cli.demo.workplace import Workplace, make_directory, make_workplace
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.output import Output, print_json, stderr, stdout

__all__ = ["run"]


def run(shared: Globals, keep: Path | None, output: Output) -> int:
    """Run the demo; returns the exit code."""
    # What a program reads is the report alone.
    console = stderr() if output is Output.JSON else stdout()
    directory = make_directory(keep)
    plan = make_plan()
    write_plan(plan, directory / "plan.json")
    screen = Screen(console, plan)
    place = make_workplace(shared, directory, keep=keep is not None, say=screen.say)
    fleet = Fleet(directory / "logs")

    def kill_all() -> None:
        fleet.end()
        place.kill()

    try:
        with interruptible(kill_all):
            print_plan(console, plan, directory / "plan.json")
            outcome = _run(place, fleet, plan, screen)
    except KeyboardInterrupt:
        raise CliError(
            "Interrupted. Nothing is left running.", why=f"The logs are in {directory}.", code=ExitCode.INTERRUPTED
        ) from None
    (directory / "report.json").write_text(json.dumps(outcome.to_json(), indent=2, default=str), encoding="utf-8")
    if output is Output.JSON:
        print_json(outcome.to_json())
    else:
        print_summary(console, outcome, place)
    return int(ExitCode.OK if outcome.proof.is_right else ExitCode.FAILURE)


def _run(place: Workplace, fleet: Fleet, plan: tuple[Planned, ...], screen: Screen) -> Outcome:
    with place.opened(), fleet:
        screen.say(f"Kafka is ready at {place.settings.kafka.bootstrap}")
        kills, plan = _play(place, fleet, plan, screen)
        problems = [problem for problem in (wait_for_view(place.settings, len(plan)), *fleet.stop()) if problem]
        screen.say("every job has ended, every process has stopped; the log is audited")
        proof = audit(place.settings, plan, problems)
    return Outcome(plan=plan, kills=kills, proof=proof, directory=place.directory, seconds=screen.elapsed_s)


def _play(
    place: Workplace, fleet: Fleet, plan: tuple[Planned, ...], screen: Screen
) -> tuple[tuple[Kill, ...], tuple[Planned, ...]]:
    """The kills, and the plan with the ids that its schedule gave."""
    settings = place.settings

    def planned(whole: tuple[Planned, ...]) -> None:
        write_plan(whole, place.directory / "plan.json")
        screen.expect(whole)

    place.start(fleet)
    with (
        Board(settings, screen.on_event) as board,
        Owners(settings, SCHEDULERS) as owners,
        screen.live(fleet, board, owners),
        open_client(settings) as client,
    ):
        director = Director(
            plan=plan, fleet=fleet, board=board, owners=owners, client=client, say=screen.say, planned=planned
        )
        director.wait_for_fleet()
        return director.play(), director.plan
