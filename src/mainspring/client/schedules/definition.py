"""The definition of a schedule, made of what a user says, and changed by it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final, TypedDict

from mainspring.client.commands import Arguments
from mainspring.client.schedules.rules import Timing, to_timing
from mainspring.client.schedules.values import duration_ms, named, refuse
from mainspring.jobs.options import JobOptions
from mainspring.jobs.payload import PayloadCodec
from mainspring.jobs.spec import Submittable, to_spec
from mainspring.schemas.job import JobSpec
from mainspring.schemas.schedule import CatchUp, Overlap, ScheduleSpec

__all__ = ["Change", "Policies", "changes_between", "define", "redefine"]


class Policies(TypedDict, total=False):
    """The policies of a schedule as keywords. Enums may be given by name, durations as `1h30m`, seconds or timedeltas.

    `overlap`: what becomes of an occurrence while an instance runs (`skip`). `buffer_max`: how many may wait (1,000).
    `catch_up`: which missed ones are fired (`latest`), none of them older than `catch_up_window` (an hour).
    `max_runs`: how many are fired (no end). `pause_on_failure`: pause once an instance has used up its retries.
    `note`: what it is for.
    """

    overlap: Overlap | str
    buffer_max: int
    catch_up: CatchUp | str
    catch_up_window: str | float | timedelta
    max_runs: int | None
    pause_on_failure: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a definition in which two versions differ, such as `timing.rules` or `job.payload`."""

    field: str
    before: Any
    after: Any


_TEMPLATE_ID: Final = "template"
"""In place of the drawn id, which the template of the instances has not."""

_OF_OPTION: Final[Mapping[str, tuple[str, ...]]] = {
    "queue": ("queue",),
    "priority": ("priority",),
    "tenant": ("tenant",),
    "timeout": ("timeout_ms",),
    "retry": ("max_retries", "retry_base_delay_ms", "retry_max_delay_ms", "retry_jitter"),
    "max_lost": ("max_lost",),
    "tags": ("tags",),
}
"""The fields of a template that follow from an option; the other options are of single jobs."""


def define(
    schedule_id: str,
    when: Timing,
    job: Submittable,
    args: Arguments,
    options: JobOptions | None,
    codec: PayloadCodec,
    policies: Policies,
) -> ScheduleSpec:
    """A first definition. Raises `InvalidScheduleError`, `InvalidJobError`, `PayloadMismatchError`."""
    template = _template(job, args, options, codec)
    return ScheduleSpec(schedule_id=schedule_id, timing=to_timing(when), job=template, **_policies(policies))


def redefine(
    spec: ScheduleSpec,
    *,
    when: Timing | None,
    job: Submittable | None,
    args: Arguments,
    options: JobOptions | None,
    codec: PayloadCodec,
    policies: Policies,
) -> ScheduleSpec:
    """The definition with what is given in place of what it had. Raises as `define`."""
    changed: dict[str, Any] = _policies(policies)
    if when is not None:
        changed["timing"] = to_timing(when)
    if job is not None:
        changed["job"] = _template(job, args, options, codec)
    elif args is not None or options is not None:
        changed["job"] = _retouched(spec.job, args, options, codec)
    return replace(spec, **changed)


def changes_between(before: ScheduleSpec, after: ScheduleSpec) -> tuple[Change, ...]:
    """The fields in which two definitions differ, in the order of the record."""
    pairs: list[tuple[str, Any, Any]] = [
        ("timing.", before.timing, after.timing),
        ("job.", before.job, after.job),
        ("", before, after),
    ]
    return tuple(
        Change(field=prefix + each.name, before=getattr(old, each.name), after=getattr(new, each.name))
        for prefix, old, new in pairs
        for each in fields(old)
        if each.name not in {"timing", "job"} and getattr(old, each.name) != getattr(new, each.name)
    )


def _template(job: Submittable, args: Arguments, options: JobOptions | None, codec: PayloadCodec) -> JobSpec:
    own = JobOptions(job_id=_TEMPLATE_ID).over(options)
    return replace(to_spec(job, args, options=own, codec=codec), job_id="")


def _retouched(template: JobSpec, args: Arguments, options: JobOptions | None, codec: PayloadCodec) -> JobSpec:
    """The same job with other arguments, or other terms: each option that says something."""
    fresh = _template(template.name, args, options, codec)
    given = [name for name in (each.name for each in fields(JobOptions)) if getattr(options, name, None) is not None]
    single = [name for name in given if name not in _OF_OPTION]
    if single:
        raise refuse(f"options.{single[0]}", "is no term of a schedule: it would be the same for every instance")
    names = [field for option in given for field in _OF_OPTION[option]]
    if args is not None:
        names += ["payload", "content_type"]
    return replace(template, **{name: getattr(fresh, name) for name in names})


def _policies(given: Policies) -> dict[str, Any]:
    known = tuple(Policies.__annotations__)
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise refuse(name, f"is no policy of a schedule; {meant}")
    values: dict[str, Any] = dict(given)
    if "overlap" in values:
        values["overlap"] = named(Overlap, "overlap", values["overlap"])
    if "catch_up" in values:
        values["catch_up"] = named(CatchUp, "catch_up", values["catch_up"])
    if "catch_up_window" in values:
        values["catch_up_window_ms"] = duration_ms("catch_up_window", values.pop("catch_up_window"))
    return values
