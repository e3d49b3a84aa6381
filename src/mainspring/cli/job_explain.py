"""`mainspring job explain`: why a job is not running, out of the scheduler's own table and the log."""

import time
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from mainspring.cli.connect import open_client
from mainspring.cli.context import settings_of
from mainspring.cli.durations import format_duration
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.events import event_record, plain
from mainspring.cli.job_ids import whole_id
from mainspring.cli.options import JobId
from mainspring.cli.output import Output, OutputOption, escape, print_json, print_pairs, stdout
from mainspring.cli.show import ago, iso, local, status_text

if TYPE_CHECKING:
    from mainspring.client import HistoryEntry
    from mainspring.processors.core import WhyNot
    from mainspring.settings import Settings


def explain(ctx: typer.Context, job_id: JobId, output: OutputOption = Output.TABLE) -> None:
    """Tell why a job is not running, or where it runs, and the event that made it so."""
    from mainspring.cli.table_row import read_partition
    from mainspring.schemas.events import JobSubmitted

    settings = settings_of(ctx)
    job_id = whole_id(settings, job_id)
    with open_client(settings) as client:
        history = list(client.history(job_id))
    why, state = read_partition(settings, job_id, history)
    if why is None:
        raise _unknown(job_id, history)
    last = next((entry for entry in reversed(history) if _changes(entry.event)), None)
    if output is Output.JSON:
        print_json(
            {
                "job_id": job_id,
                "status": state.status.name,
                "why": {"type": type(why).__name__, "text": str(why), **_fields(why)},
                "last_event": None if last is None else event_record(last.event, last.partition, last.offset),
                "refused_commands": [
                    event_record(each.event, each.partition, each.offset)
                    for each in history
                    if type(each.event).__name__ == "CommandRejected"
                ],
            }
        )
        return
    name = next((entry.event.spec.name for entry in reversed(history) if isinstance(entry.event, JobSubmitted)), None)
    _print(settings, {"job": job_id, "name": name}, why, state, last)


def _changes(event: Any) -> bool:
    return type(event).__name__ not in {"CommandRejected", "ReportRefused"}


def _fields(why: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for field in fields(why):
        value = getattr(why, field.name)
        if field.name.endswith("_ms"):
            shown[field.name.removesuffix("_ms")] = iso(value)
        else:
            shown[field.name] = plain(value)
    return shown


def _print(
    settings: "Settings", job: Mapping[str, Any], why: "WhyNot", state: Any, last: "HistoryEntry | None"
) -> None:
    from mainspring.processors.core.explain import Parked

    stdout().print(f"[bold]{escape(sentence(why))}[/]")
    pairs: dict[str, Any] = {**job, "status": status_text(state.status.name), "queue": state.queue}
    if isinstance(why, Parked):
        cancelled_ms = why.since_ms + settings.scheduler.unknown_name_after_ms
        pairs["cancelled"] = f"{ago(cancelled_ms)}, at {local(cancelled_ms)}, if no worker knows the name by then"
    if last is not None:
        event = last.event
        pairs["last event"] = f"{type(event).__name__} (revision {event.revision}), {ago(event.decided_at_ms)}"
        pairs["at"] = (
            f"partition {last.partition}, offset {last.offset} of events, {local(event.decided_at_ms, ms=True)}"
        )
        cause = event.cause
        place = "" if cause.offset < 0 else f", partition {cause.partition}, offset {cause.offset}"
        pairs["decided"] = f"by {cause.source.name.lower()}{place}"
        pairs |= why_it_ended(event)
    print_pairs(pairs)


def why_it_ended(event: Any) -> dict[str, Any]:
    """What an event says of the end of an attempt or a job beyond its type: the error, the code, who asked and why."""
    shown: dict[str, Any] = {}
    error = getattr(event, "error", None)
    if error is not None:
        shown["error"] = f"{error.type}: {error.message.partition(chr(10))[0]}"
    match type(event).__name__:
        case "JobCancelled":
            by = f" by {event.actor}" if event.actor else ""
            words = f": {event.reason}" if event.reason else ""
            shown["ended"] = f"{event.cancel_code}{by}{words}"
        case "JobFailed":
            shown["ended"] = event.reason
        case "JobTimedOut":
            shown["ended"] = f"longer than its time-out of {format_duration(event.timeout_ms / 1000)}"
    return shown


def sentence(why: "WhyNot") -> str:  # noqa: PLR0911 - one case per reason
    """The reason in words, with times as people read them, and what an operator can do about it."""
    from mainspring.processors.core.explain import Finished, Offered, Parked, Ready, Running, ScheduledUntil

    match why:
        case ScheduledUntil():
            what = f"Attempt {why.after_attempt} is to be repeated" if why.after_attempt else "It is scheduled"
            return f"{what}: due {ago(why.due_at_ms)}, at {local(why.due_at_ms)}."
        case Parked():
            return (
                f"No worker that was asked has known its name for {_since(why.since_ms)}; it is offered again "
                f"{ago(why.until_ms)}. Deploy a worker whose app registers the name."
            )
        case Offered():
            return (
                f"It has been on offer for {_since(why.since_ms)} (attempt {why.attempt}, offer {why.offer}); "
                "no worker has claimed it yet. Does a worker with a free slot serve its queue?"
            )
        case Running():
            asked = ", and was asked to stop" if why.cancel_requested else ""
            return f"It has been running for {_since(why.since_ms)}: attempt {why.attempt} on {why.worker_id}{asked}."
        case Ready():
            flight = f"; {why.in_flight} of the queue are on offer or running" if why.in_flight else ""
            behind = f"behind {why.ahead} others of its partition" if why.ahead else "and is the next of its partition"
            return f"It is due and waits in queue {why.queue} {behind}{flight}."
        case Finished():
            return f"It is {why.status.name}, {ago(why.finished_at_ms)}, and never runs again."
    return f"{str(why)[:1].upper()}{str(why)[1:]}."


def _since(at_ms: int) -> str:
    return format_duration(max(0, time.time_ns() // 1_000_000 - at_ms) / 1000)


def _unknown(job_id: str, history: list["HistoryEntry"]) -> CliError:
    now_ms = time.time_ns() // 1_000_000
    refused = [entry.event for entry in history if type(entry.event).__name__ == "CommandRejected"]
    why = "The log has no event of this id."
    if refused:
        last: Any = refused[-1]
        why = f"Its {last.command} was refused {ago(last.decided_at_ms, now_ms)} [{last.reject_code}]: {last.message}"
    return CliError(
        f"There is no job {job_id!r}.",
        why=why,
        hint="Check the id and topics.prefix; a command that no scheduler has read yet is not decided.",
        code=ExitCode.NOT_FOUND,
    )
