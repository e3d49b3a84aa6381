"""Schedules as a file has them: TOML, a `[[schedules]]` table for each."""

import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mainspring.cli.durations import parse_duration
from mainspring.cli.errors import CliError, ExitCode
from mainspring.cli.job_terms import retry_policy
from mainspring.cli.options import PriorityName

if TYPE_CHECKING:
    from mainspring.client.schedules import When
    from mainspring.jobs.options import JobOptions

__all__ = ["ScheduleEntry", "read_schedules"]

_MAX_BYTES: Final = 4 << 20
"""Thousands of schedules; what is larger is another file that was named by mistake."""


def _duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _several(value: object) -> object:
    if not isinstance(value, str | list):
        raise ValueError(f'must be a text such as "10m" or "30 2 * * *", or a list of such, not {value}')  # noqa: TRY004 - what pydantic tells the user
    return [value] if isinstance(value, str) else value


def _arguments(value: object, place: str = "") -> object:
    """Refuses what TOML has and JSON has not: dates and times."""
    if isinstance(value, date | datetime | time):
        raise ValueError(f"{place or 'it'} is a date or a time, which JSON has not: write it as a text in quotes")  # noqa: TRY004 - as above
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        _arguments(each, f"{place}.{key}" if place else str(key))
    return value


def _instant(value: object) -> object:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("must be an instant with Z or an offset, such as 2027-01-01T00:00:00Z")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is before the year 1 or after the year 9999 in UTC") from None


_Duration = Annotated[timedelta, BeforeValidator(_duration)]
_Texts = Annotated[list[str], BeforeValidator(_several)]
_Arguments = Annotated[dict[str, Any], BeforeValidator(_arguments)]
_Instant = Annotated[datetime, BeforeValidator(_instant)]


class ScheduleEntry(BaseModel):
    """One schedule of a file. The keys are the options of `schedule create`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    job: str
    payload: _Arguments | None = None

    cron: _Texts = []
    every: _Texts = []
    exclude: _Texts = []
    calendars: dict[str, list[date]] = {}
    tz: str = "UTC"
    seconds: bool = False
    anchor: _Instant | None = None
    start: _Instant | None = None
    end: _Instant | None = None
    jitter: _Duration = timedelta(0)
    gap: str = "end-of-gap"
    fold: str = "first"

    queue: str | None = None
    priority: PriorityName | None = None
    tenant: str | None = None
    tags: list[str] | None = None
    timeout: _Duration | None = None
    retries: int | None = Field(default=None, ge=0)
    retry_delay: _Duration | None = None
    retry_max_delay: _Duration | None = None
    max_lost: int | None = Field(default=None, ge=0)

    overlap: str | None = None
    buffer_max: int | None = None
    catch_up: str | None = None
    catch_up_window: _Duration | None = None
    max_runs: int | None = None
    pause_on_failure: bool | None = None
    note: str | None = None

    def when(self) -> "When":
        """When it fires."""
        from mainspring.client.schedules import Cron, Every, When

        return When(
            [
                *(Cron(text, seconds=self.seconds) for text in self.cron),
                *(Every(text, anchor=self.anchor) for text in self.every),
            ],
            exclude=[Cron(text, seconds=self.seconds) for text in self.exclude],
            calendars=self.calendars,
            tz=self.tz,
            start=self.start,
            end=self.end,
            jitter=self.jitter,
            gap=self.gap,
            fold=self.fold,
        )

    def options(self) -> "JobOptions | None":
        """The terms of its jobs; None where none is given."""
        from mainspring.jobs.options import NO_OPTIONS, JobOptions
        from mainspring.schemas.common import Priority

        options = JobOptions(
            queue=self.queue,
            priority=None if self.priority is None else Priority[self.priority.value],
            tenant=self.tenant,
            tags=None if self.tags is None else tuple(self.tags),
            timeout=self.timeout,
            retry=retry_policy(self.retries, self.retry_delay, self.retry_max_delay),
            max_lost=self.max_lost,
        )
        return None if options == NO_OPTIONS else options

    def policies(self) -> dict[str, Any]:
        """The policies that are given, as the client takes them."""
        names = ("overlap", "buffer_max", "catch_up", "catch_up_window", "max_runs", "pause_on_failure", "note")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    schedules: list[ScheduleEntry]


def read_schedules(path: Path) -> Sequence[ScheduleEntry]:
    """The schedules of a file, each id once. Raises `CliError` that names the place."""
    try:
        found = _File.model_validate(tomllib.loads(_text(path)))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CliError(f"{path} cannot be read: {error}.", code=ExitCode.USAGE) from None
    except ValidationError as error:
        raise CliError(
            f"{path}: {'; '.join(_problems(error))}.",
            hint="docs/schedules.md has an example; the keys are the options of `schedule create`.",
            code=ExitCode.USAGE,
        ) from None
    ids = [entry.id for entry in found.schedules]
    twice = sorted({each for each in ids if ids.count(each) > 1})
    if twice:
        raise CliError(f"{path}: {', '.join(twice)} is there more than once.", code=ExitCode.USAGE)
    return found.schedules


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise CliError(f"{path} has more than {_MAX_BYTES >> 20} MiB: is it the right file?", code=ExitCode.USAGE)
    return data.decode()


def _problems(error: ValidationError) -> Iterable[str]:
    for problem in error.errors():
        place = ".".join(str(each) for each in problem["loc"])
        yield f"{place}: {problem['msg'].removeprefix('Value error, ')}"
