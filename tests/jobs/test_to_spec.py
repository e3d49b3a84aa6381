"""From what a user writes to a specification: defaults, conversions, and everything that is refused by name."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.jobs import (
    App,
    AsyncJob,
    InvalidJobError,
    JobOptions,
    JobPriority,
    PayloadMismatchError,
    RetryPolicy,
    to_spec,
)
from mainspring.schemas.codes import RejectCode

app = App("spec")


@app.job(queue="mail", priority=JobPriority.HIGH, timeout=30, retry=RetryPolicy(max_retries=5, base_delay=0.5))
async def send(to: str, copies: int = 1) -> None:
    """A function with terms of its own."""


class Report(AsyncJob):
    """A class with terms of its own, not registered anywhere."""

    priority = JobPriority.LOW
    tags = ("reports",)
    customer: str
    pages: list[int]

    async def run(self) -> None:
        """Does nothing."""


def test_a_call_carries_its_arguments_and_the_terms_of_its_handler() -> None:
    spec = to_spec(send.job("ann"))
    assert (spec.name, spec.queue, spec.priority, spec.timeout_ms) == ("send", "mail", JobPriority.HIGH, 30_000)
    assert (spec.max_retries, spec.retry_base_delay_ms, spec.retry_max_delay_ms) == (5, 500, 60_000)
    assert json.loads(spec.payload) == {"to": "ann"}, "a default stays the handler's"


def test_options_win_over_the_job_and_the_job_over_its_handler() -> None:
    call = send.job("ann").with_options(priority=JobPriority.LOW, tenant="t")
    spec = to_spec(call, options=JobOptions(tenant="u"))
    assert (spec.priority, spec.tenant, spec.queue) == (JobPriority.LOW, "u", "mail")


def test_a_job_object_carries_its_fields_and_its_terms() -> None:
    spec = to_spec(Report("acme", [1, 2], tenant="t", job_id="r1"))
    assert (spec.job_id, spec.name, spec.tenant, spec.priority, spec.tags) == (
        "r1",
        "Report",
        "t",
        JobPriority.LOW,
        ("reports",),
    )
    assert json.loads(spec.payload) == {"customer": "acme", "pages": [1, 2]}


def test_a_bare_name_takes_any_tree_that_json_can_hold() -> None:
    when = datetime(2030, 1, 1, tzinfo=UTC)
    spec = to_spec("elsewhere", {"when": when, "text": "é\x00"})
    assert json.loads(spec.payload) == {"when": "2030-01-01T00:00:00Z", "text": "é\x00"}


def test_without_arguments_the_payload_is_an_empty_object() -> None:
    assert to_spec("elsewhere").payload == b"{}"


def test_ids_are_drawn_and_differ() -> None:
    assert len({to_spec("x").job_id for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("given_delay", "ms"),
    [
        (0, 0),
        (1, 1000),
        (0.1, 100),
        (1.0005, 1001),
        (0.0001, 1),
        (timedelta(seconds=2), 2000),
        (timedelta(microseconds=1), 1),
    ],
)
def test_durations_are_seconds_or_timedeltas_and_never_become_shorter(given_delay: Any, ms: int) -> None:
    assert to_spec("x", options=JobOptions(delay=given_delay)).delay_ms == ms


@settings(deadline=None)  # a busy machine is no failure
@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))  # noqa: DTZ001  # hypothesis wants naive bounds
def test_an_instant_never_becomes_earlier_and_less_than_a_millisecond_later(when: datetime) -> None:
    ms = to_spec("x", options=JobOptions(run_at=when)).run_at_ms
    assert ms is not None
    late = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms) - when
    assert timedelta(0) <= late < timedelta(milliseconds=1)


def test_a_zone_is_a_zone() -> None:
    tokyo = timezone(timedelta(hours=9))
    spec = to_spec("x", options=JobOptions(run_at=datetime(2026, 1, 1, 9, tzinfo=tokyo)))
    assert spec.run_at_ms == datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize(
    ("options", "field", "code"),
    [
        ({"run_at": datetime(2026, 1, 1)}, "run_at", RejectCode.INVALID_FIELD),  # noqa: DTZ001  # naive is what is refused
        ({"deadline": datetime(2026, 1, 1)}, "deadline", RejectCode.INVALID_FIELD),  # noqa: DTZ001  # the same
        ({"run_at": 1_700_000_000}, "run_at", RejectCode.INVALID_FIELD),
        ({"delay": math.nan}, "delay", RejectCode.INVALID_FIELD),
        ({"delay": math.inf}, "delay", RejectCode.INVALID_FIELD),
        ({"delay": -1}, "delay_ms", RejectCode.INVALID_FIELD),
        ({"delay": True}, "delay", RejectCode.INVALID_FIELD),
        ({"delay": "10"}, "delay", RejectCode.INVALID_FIELD),
        ({"delay": 1e300}, "delay_ms", RejectCode.INVALID_FIELD),
        ({"timeout": 0}, "timeout_ms", RejectCode.INVALID_FIELD),
        ({"timeout": -0.5}, "timeout_ms", RejectCode.INVALID_FIELD),
        ({"job_id": ""}, "job_id", RejectCode.INVALID_FIELD),
        ({"job_id": "a\x00b"}, "job_id", RejectCode.INVALID_FIELD),
        ({"job_id": "a\ud800"}, "job_id", RejectCode.INVALID_FIELD),
        ({"job_id": "x" * 256}, "job_id", RejectCode.INVALID_FIELD),
        ({"job_id": "s@2026"}, "job_id", RejectCode.INVALID_FIELD),
        ({"job_id": 7}, "job_id", RejectCode.INVALID_FIELD),
        ({"queue": "a.b"}, "queue", RejectCode.INVALID_FIELD),
        ({"queue": ""}, "queue", RejectCode.INVALID_FIELD),
        ({"priority": 7}, "priority", RejectCode.INVALID_FIELD),
        ({"priority": True}, "priority", RejectCode.INVALID_FIELD),
        ({"tags": "abc"}, "tags", RejectCode.INVALID_FIELD),
        ({"tags": ("a", 1)}, "tags", RejectCode.INVALID_FIELD),
        ({"max_lost": -1}, "max_lost", RejectCode.INVALID_FIELD),
        ({"max_lost": 1.5}, "max_lost", RejectCode.INVALID_FIELD),
        ({"retry": 3}, "retry", RejectCode.INVALID_FIELD),
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 1}, "delay_ms", RejectCode.INVALID_FIELD),
        ({"depends_on": ("a",)}, "depends_on", RejectCode.NOT_SUPPORTED),
        ({"schedule_id": "s"}, "schedule_id", RejectCode.NOT_SUPPORTED),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, Any], field: str, code: RejectCode) -> None:
    with pytest.raises(InvalidJobError) as refused:
        to_spec("x", options=JobOptions(**options))
    assert (refused.value.field, refused.value.code) == (field, code)
    assert field in str(refused.value)


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"a": {"b": [1.0, math.nan]}}, "payload.a.b[1]"),
        ({"a": -math.inf}, "payload.a"),
        ({"a": "\ud800"}, "payload.a"),
        ({"\ud800": 1}, "payload"),
    ],
)
def test_a_payload_that_json_cannot_hold_is_refused_with_the_path_to_it(tree: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        to_spec("x", tree)
    assert refused.value.field.startswith(path)


def test_a_payload_over_the_limit_is_refused_with_its_size() -> None:
    with pytest.raises(InvalidJobError, match=r"800014 bytes.*524288") as refused:
        to_spec("x", {"a": "é" * 400_000, "b": 1})
    assert refused.value.code is RejectCode.PAYLOAD_TOO_LARGE


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (send.job, "to: .*missing|required"),  # what an untyped caller may give
        (lambda: send.job("a", 1, 2), "takes 2 arguments, 3 were given"),  # type: ignore[call-arg]  # the same
        (lambda: send.job("a", to="b"), "to: is given twice"),  # type: ignore[misc]  # the same
        (lambda: send.job("a", copies="many"), "copies: "),  # type: ignore[arg-type]  # the same
        (lambda: send.job("a", colour="red"), "colour: "),  # type: ignore[call-arg]  # the same
        (lambda: to_spec("x", ["a"]), "by name"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_anything_is_sent(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(PayloadMismatchError, match=f"(?i){words}"):
        make()
