"""`mainspring topics`: what the cluster needs, and making it so."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring.cli.connect import reach
from mainspring.cli.context import settings_of
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.output import Column, Output, OutputOption, note, print_json, print_table, stdout, warn

if TYPE_CHECKING:
    from mainspring.settings import Settings
    from mainspring.topics.acls import Grant
    from mainspring.topics.plan import Plan

app = typer.Typer(help="Compare the topics with what is needed, make them, print the ACLs.", no_args_is_help=True)

_DONE = {"create": "created", "grow": "grown", "change": "changed"}
_STYLES = {"create": "green", "grow": "cyan", "change": "yellow", "conflict": "bold red"}


Replication = Annotated[int | None, typer.Option(help="Copies of every topic.", min=1, metavar="N")]
MinIsr = Annotated[
    int | None, typer.Option(help="Copies that must have a record (min.insync.replicas).", min=1, metavar="N")
]


@app.command()
def plan(
    ctx: typer.Context,
    *,
    replication: Replication = None,
    min_isr: MinIsr = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 when there is something to do.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what `apply` would do, and what it cannot; changes nothing. Exit code 4 when something stands in the way."""
    from mainspring.topics import admin

    settings = _settings(ctx, replication, min_isr)
    found = admin.plan(reach(settings), settings.topology())
    _print(found, output, settings, empty="Nothing to do: the topics are as they should be.")
    if found.mismatches:
        raise typer.Exit(ExitCode.REJECTED)
    if found.steps:
        note("\nNext: [bold]mainspring topics apply[/]")
    if check and not found.is_empty:
        raise typer.Exit(ExitCode.FAILURE)


@app.command()
def apply(
    ctx: typer.Context,
    *,
    replication: Replication = None,
    min_isr: MinIsr = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the topics that are missing and change settings that differ; nothing is ever deleted."""
    from mainspring.topics import TopicMismatchError, admin

    settings = _settings(ctx, replication, min_isr)
    try:
        done = admin.apply(reach(settings), settings.topology())
    except TopicMismatchError as error:
        raise CliError(
            "Nothing was changed: some topics differ in what cannot be changed in place.",
            why="\n".join(str(error).split("; ")),
            hint="`mainspring topics plan` shows all of it.",
            code=ExitCode.REJECTED,
        ) from error
    _print(done, output, settings, empty="Nothing to do: the topics are as they should be.", done=True)
    if done.steps:
        count = len(done.steps)
        note(f"\n[green]Done[/]: {count} {'topic' if count == 1 else 'topics'} made or changed.")


@app.command()
def acls(
    ctx: typer.Context,
    *,
    role: Annotated[list[str] | None, typer.Option(help="Only this role; may be repeated.", metavar="ROLE")] = None,
    principal: Annotated[
        str, typer.Option(help="The principal of each role; {role} stands for its name.", metavar="TEXT")
    ] = "User:mainspring-{role}",
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the `kafka-acls` commands that give each role what it needs, and no more."""
    from mainspring.topics import Role, admin

    known = [each.value for each in Role]
    for each in role or ():
        if each not in known:
            raise typer.BadParameter(f"{each!r} is no role: there are {', '.join(known)}", param_hint="--role")
    settings = settings_of(ctx)
    grants = [grant for grant in admin.acls(settings.topology()) if not role or grant.role.value in role]
    if output is Output.JSON:
        print_json([_grant(grant, principal) for grant in grants])
        return
    last = None
    for grant in grants:
        if grant.role is not last:
            stdout().print(f"{'' if last is None else chr(10)}# {grant.role.value}", soft_wrap=True, style="bold")
            last = grant.role
        command = grant.command(_principal(principal, grant), settings.kafka.bootstrap)
        stdout().print(command, soft_wrap=True, markup=False)


def _settings(ctx: typer.Context, replication: int | None, min_isr: int | None) -> "Settings":
    return settings_of(ctx, **{"topics.replication": replication, "topics.min_isr": min_isr})


def _principal(pattern: str, grant: "Grant") -> str:
    return pattern.replace("{role}", grant.role.value)


def _grant(grant: "Grant", principal: str) -> dict[str, Any]:
    return {
        "role": grant.role.value,
        "principal": _principal(principal, grant),
        "resource": grant.resource.value,
        "name": grant.name,
        "pattern": "prefixed" if grant.prefixed else "literal",
        "operations": [operation.value for operation in grant.operations],
        "why": grant.why,
    }


def _print(plan: "Plan", output: Output, settings: "Settings", *, empty: str, done: bool = False) -> None:
    if output is Output.JSON:
        print_json(
            {
                "steps": [_step(step) for step in plan.steps],
                "conflicts": [{"topic": each.topic.name, "message": each.message} for each in plan.mismatches],
            }
        )
    else:
        rows = [_row("conflict", each.topic.name, each.message) for each in plan.mismatches]
        rows += [_row(*_told(step), done=done) for step in plan.steps]
        columns = (Column(head="ACTION"), Column(head="TOPIC"), Column(head="WHAT", fold=True))
        print_table(columns, rows, empty=empty)
    for text in settings.warnings():
        if text.startswith("topics."):
            warn(text)


def _row(action: str, topic: str, what: str, *, done: bool = False) -> list[Any]:
    from rich.text import Text

    return [Text(_DONE.get(action, action) if done else action, style=_STYLES[action]), topic, what]


def _told(step: Any) -> tuple[str, str, str]:
    """Action, topic and the rest of what a step says of itself: `change NAME: what`."""
    head, _, what = str(step).partition(": ")
    action, _, topic = head.partition(" ")
    return action, topic, what


def _step(step: Any) -> dict[str, Any]:
    action, topic, what = _told(step)
    shown: dict[str, Any] = {"action": action, "topic": topic, "what": what}
    if action == "change":
        shown["changes"] = {name: {"from": there, "to": wanted} for name, (there, wanted) in step.changes.items()}
    else:
        shown["partitions"] = step.topic.partitions
        shown["replication"] = step.topic.replication
    return shown
