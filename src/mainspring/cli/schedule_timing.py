"""The options that say when a schedule fires, and the definition they make together."""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mainspring.cli.durations import format_duration, parse_duration
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.options import Duration, Instant, duration_option, in_utc

if TYPE_CHECKING:
    from mainspring.schemas.limits import Problem
    from mainspring.schemas.schedule import CronRule, ScheduleTiming

__all__ = [
    "Anchor",
    "Crons",
    "End",
    "Everies",
    "Excludes",
    "FoldName",
    "FoldOption",
    "GapName",
    "GapOption",
    "Jitter",
    "NewTimingOptions",
    "Seconds",
    "Start",
    "TimeZone",
    "TimingOptions",
    "absolute",
]

_BOUNDS: Final = re.compile(r"from \d+ to \d+ ms, and is -?\d+")
_NUMBER: Final = re.compile(r"\d+")
_MS: Final = timedelta(milliseconds=1)


class GapName(StrEnum):
    """What becomes of a local time that the clock jumps over, by name."""

    END_OF_GAP = "end-of-gap"
    SKIP = "skip"


class FoldName(StrEnum):
    """What becomes of a local time that comes twice, by name."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


def absolute(text: str) -> datetime:
    """An instant as an option's value: ISO 8601 with an offset, so that the zone of this machine does not matter."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise typer.BadParameter(
            f"{text!r} is no instant: write it with Z or an offset, like 2026-03-29T00:00:00Z or 2026-03-29T01:00+01:00"
        )
    return in_utc(parsed, text)


Crons = Annotated[
    list[str] | None,
    typer.Option("--cron", help="When the local time matches, such as '30 2 * * MON-FRI'.", metavar="EXPRESSION"),
]
Everies = Annotated[
    list[str] | None, typer.Option("--every", help="Every so often: 15m, 1h30m, 2d.", metavar="DURATION")
]
Excludes = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", help="Not in local minutes that match, such as '* 22-23,0-5 * * *'.", metavar="EXPRESSION"
    ),
]
Seconds = Annotated[bool, typer.Option("--seconds", help="Expressions have six fields, seconds first.")]
Anchor = Annotated[
    Instant, typer.Option(parser=absolute, help="What --every counts from; else its creation.", metavar="TIME")
]
Start = Annotated[Instant, typer.Option(parser=absolute, help="Nothing fires before this.", metavar="TIME")]
End = Annotated[Instant, typer.Option(parser=absolute, help="Nothing fires after this.", metavar="TIME")]
Jitter = Annotated[Duration, duration_option("--jitter", "Fire each up to this later, always the same.")]
_ZONE = typer.Option("--tz", help="IANA zone of the local time.", metavar="ZONE")
_GAP = typer.Option("--gap", help="Times of the day that the clock jumps over in spring.")
_FOLD = typer.Option("--fold", help="Times of the day that come twice in autumn.")
TimeZone = Annotated[str, _ZONE]
GapOption = Annotated[GapName, _GAP]
FoldOption = Annotated[FoldName, _FOLD]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingOptions:
    """The options above as they were given; None: not given."""

    crons: Crons = None
    everies: Everies = None
    zone: Annotated[str | None, _ZONE] = None
    seconds: Seconds = False
    excludes: Excludes = None
    anchor: Anchor = None
    start: Start = None
    end: End = None
    jitter: Jitter = None
    gap: Annotated[GapName | None, _GAP] = None
    fold: Annotated[FoldName | None, _FOLD] = None

    def timing(self, created_ms: int | None) -> "ScheduleTiming":
        """The definition that they make, checked. Raises `CliError` that names the option.

        `created_ms`: when it is created, in epoch milliseconds: it must fire after that. None: not known here.
        """
        from mainspring.schemas.schedule import ScheduleTiming

        if not self.crons and not self.everies:
            raise CliError(
                "Nothing says when it fires.",
                hint="Give --cron '30 2 * * MON-FRI' or --every 15m.",
                code=ExitCode.USAGE,
            )
        return _checked(ScheduleTiming(**self._given()), created_ms)

    def changed(self, timing: "ScheduleTiming", *, created_ms: int, now_ms: int) -> "ScheduleTiming":
        """The definition with what was given in place of what it had, checked. Raises `CliError` that names the option.

        Rules are replaced as a whole, and so are exclusions. `created_ms`: when the schedule was created; `now_ms`:
        when it is changed, and it must fire after that; both in epoch milliseconds.
        """
        needs_rules = self.anchor is not None or (self.seconds and not self.excludes)
        if needs_rules and not self.crons and not self.everies:
            name = "--seconds" if self.anchor is None else "--anchor"
            raise CliError(
                f"{name} needs the rules that it is about.", hint="Give --cron or --every.", code=ExitCode.USAGE
            )
        given = self._given()
        return _checked(replace(timing, **given), created_ms, now_ms) if given else timing

    def _given(self) -> dict[str, Any]:
        """The fields of the definition that were given."""
        from mainspring.schemas.epoch import to_epoch_ms
        from mainspring.schemas.schedule import CronRule, FoldRule, GapRule, IntervalRule

        anchor_ms = None if self.anchor is None else to_epoch_ms(self.anchor)
        rules: tuple[CronRule | IntervalRule, ...] = (
            *_cron_rules(self.crons, seconds=self.seconds),
            *(IntervalRule(every_ms=_every_ms(text), anchor_ms=anchor_ms) for text in self.everies or ()),
        )
        fields = {
            "rules": rules or None,
            "exclude": _cron_rules(self.excludes, seconds=self.seconds) or None,
            "timezone": self.zone,
            "start_ms": None if self.start is None else to_epoch_ms(self.start),
            "end_ms": None if self.end is None else to_epoch_ms(self.end),
            "jitter_ms": None if self.jitter is None else self.jitter // _MS,
            "gap": None if self.gap is None else GapRule[self.gap.name],
            "fold": None if self.fold is None else FoldRule[self.fold.name],
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTimingOptions(TimingOptions):
    """Those of a new schedule, whose zone and rules of clock changes are always known."""

    zone: TimeZone = "UTC"
    gap: GapOption = GapName.END_OF_GAP
    fold: FoldOption = FoldName.FIRST


def _checked(timing: "ScheduleTiming", created_ms: int | None, now_ms: int | None = None) -> "ScheduleTiming":
    from mainspring.processors.core.timing import check_timing

    problem = check_timing(timing, created_ms=created_ms, after_ms=now_ms)
    if problem is not None:
        raise _refused(problem, timing)
    return timing


def _cron_rules(expressions: list[str] | None, *, seconds: bool) -> "tuple[CronRule, ...]":
    from mainspring.schemas.schedule import CronRule

    return tuple(CronRule(expression=text, seconds=seconds) for text in expressions or ())


def _every_ms(text: str) -> int:
    try:
        return parse_duration(text) // _MS
    except ValueError as error:
        raise CliError(f"--every: {error}.", code=ExitCode.USAGE) from None


def _refused(problem: "Problem", timing: "ScheduleTiming") -> CliError:
    message = _as_options_have_it(problem.message.removeprefix(problem.field).strip())
    return CliError(f"{_option(problem.field, timing)}: {message}.", hint="See docs/schedules.md.", code=ExitCode.USAGE)


def _as_options_have_it(message: str) -> str:
    """A message about fields and milliseconds in terms of options and durations."""

    def duration(found: re.Match[str]) -> str:
        return format_duration(int(found[0]) / 1000)

    bounds = _BOUNDS.search(message)
    if bounds is not None:
        message = _NUMBER.sub(duration, message.replace(" ms,", ","))
    return message.replace("start_ms", "--start")


def _option(field: str, timing: "ScheduleTiming") -> str:
    """The option that a field of the definition came from, with its value where there are several."""
    from mainspring.schemas.schedule import CronRule

    for at, rule in enumerate(timing.rules):
        if field.startswith(f"timing.rules[{at}]"):
            return f"--cron {rule.expression!r}" if isinstance(rule, CronRule) else "--every"
    for at, rule in enumerate(timing.exclude):
        if field.startswith(f"timing.exclude[{at}]") and isinstance(rule, CronRule):
            return f"--exclude {rule.expression!r}"
    names = {"timezone": "--tz", "start_ms": "--start", "end_ms": "--end", "jitter_ms": "--jitter"}
    return names.get(field.removeprefix("timing."), "The schedule")
