"""Bounds: what is refused, by which field, in which words; and that nothing within them is."""

import dataclasses
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mainspring.schemas import (
    CancelJob,
    Codec,
    JobSpec,
    Priority,
    RejectCode,
    RescheduleJob,
    RetryJob,
    SubmitJob,
    bounds,
    limits,
)
from mainspring.schemas.limits import (
    check_command,
    check_delay_ms,
    check_id,
    check_instant_ms,
    check_payload,
    check_progress,
    check_queue,
    check_result,
    check_spec,
    check_tags,
    check_timeout_ms,
    clip,
    clip_bytes,
)
from tests.support.strategies import ids, specs, submits

SPEC = JobSpec(job_id="job-1", name="mail")
CODEC = Codec.embedded()


@given(spec=specs())
@settings(deadline=None)
def test_a_specification_within_all_bounds_is_accepted(spec: JobSpec) -> None:
    assert check_spec(spec) is None


@given(submit=submits())
@settings(deadline=None)
def test_a_command_within_all_bounds_is_accepted_and_can_be_encoded(submit: SubmitJob) -> None:
    assert check_command(submit) is None
    assert CODEC.decode(CODEC.encode(submit)) == submit


WILD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, 0, 1, -1, 1.0, (), ("a", "a"), [], Priority.LOW]),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
)


@given(data=st.data())
@settings(max_examples=500, deadline=None)
def test_whatever_passes_the_checks_can_be_encoded_and_the_quick_check_agrees_with_the_thorough_one(
    data: st.DataObject,
) -> None:
    # given a specification with up to two fields of any value at all
    names = data.draw(st.lists(st.sampled_from([field.name for field in dataclasses.fields(JobSpec)]), max_size=2))
    changes = {name: data.draw(WILD) for name in names}
    spec = replace(SPEC, **changes)

    problem = limits._check_thoroughly(spec, derived=False)

    assert check_spec(spec) == problem
    if problem is None:
        assert CODEC.decode(CODEC.encode(spec)) == spec


@pytest.mark.parametrize(
    "job_id", ["a:b", "a/b", "a b", "..", "%2F", "\u00e9", "e\u0301", "١", "x" * 255, "A", "😀", "id"]
)
def test_odd_ids_are_ids_and_stay_what_they_are(job_id: str) -> None:
    assert check_id(job_id) is None
    spec = CODEC.decode(CODEC.encode(replace(SPEC, job_id=job_id)))
    assert isinstance(spec, JobSpec)
    assert spec.job_id == job_id


def test_the_two_forms_of_one_letter_are_two_ids() -> None:
    assert CODEC.encode(replace(SPEC, job_id="\u00e9")) != CODEC.encode(replace(SPEC, job_id="e\u0301"))


@pytest.mark.parametrize(
    ("job_id", "says"),
    [
        ("", "job_id must have 1 to 255 characters, and is empty"),
        ("x" * 256, "job_id must have at most 255 characters, and has 256"),
        ("j\0b", r"job_id has a character that is not printable (U+0000) at index 1"),
        ("a\nb", "U+000A"),
        ("a\u200bb", "U+200B"),
        ("a\x7f", "U+007F"),
        ("a\ud800", "job_id has a lone surrogate (U+D800) at index 1"),
        ("nightly@1", "'@', which is reserved for jobs fired by schedules"),
        (7, "job_id must be a string, not int"),
        (None, "job_id must be a string, not NoneType"),
        (b"job", "job_id must be a string, not bytes"),
    ],
)
def test_an_id_out_of_bounds_is_refused_in_words(job_id: Any, says: str) -> None:
    problem = check_id(job_id)

    assert problem is not None
    assert says in problem.message
    assert (problem.code, problem.field) == (RejectCode.INVALID_FIELD, "job_id")


@given(ids())
def test_only_schedules_may_use_their_reserved_character(job_id: str) -> None:
    assert check_id(f"{job_id[:200]}@2026", derived=True) is None
    assert check_id(f"{job_id[:200]}@2026") is not None


@pytest.mark.parametrize("queue", ["default", "a", "A-1_b", "9", "q" * 128])
def test_a_queue_is_a_legal_part_of_a_topic_name(queue: str) -> None:
    assert check_queue(queue) is None


@pytest.mark.parametrize("queue", ["", "-a", "a-", "_a", "a.b", "a b", "é", "a/b", "q" * 129, "a\n", None, 7])
def test_a_queue_that_no_topic_could_be_named_after_is_refused(queue: Any) -> None:
    problem = check_queue(queue)

    assert problem is not None
    assert problem.field == "queue"


@pytest.mark.parametrize("number", [-1, 1.5, 1.0, math.nan, math.inf, -math.inf, 1e309, True, "10", None, 1 << 63])
@pytest.mark.parametrize("check", [check_instant_ms, check_delay_ms, check_timeout_ms])
def test_times_are_whole_finite_numbers_of_milliseconds_that_are_not_negative(check: Any, number: Any) -> None:
    problem = check(number, "field")

    assert problem is not None
    assert problem.message.startswith("field must be")


def test_the_past_means_now_and_the_year_9999_is_the_last() -> None:
    assert check_instant_ms(0) is None
    assert check_instant_ms(bounds.INSTANT_MAX_MS) is None
    assert check_instant_ms(bounds.INSTANT_MAX_MS + 1) is not None


def test_a_time_out_of_zero_is_refused_with_what_to_do() -> None:
    problem = check_timeout_ms(0)

    assert problem is not None
    assert "leave it out for no time-out" in problem.message


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"run_at_ms": 1, "delay_ms": 1}, "delay_ms", RejectCode.INVALID_FIELD),
        ({"run_at_ms": 0, "delay_ms": 0}, "delay_ms", RejectCode.INVALID_FIELD),
        ({"depends_on": ("job-0",)}, "depends_on", RejectCode.NOT_SUPPORTED),
        ({"schedule_id": "nightly"}, "schedule_id", RejectCode.NOT_SUPPORTED),
        ({"payload": b"x" * (bounds.PAYLOAD_MAX_BYTES + 1)}, "payload", RejectCode.PAYLOAD_TOO_LARGE),
        ({"payload": "text"}, "payload", RejectCode.INVALID_FIELD),
        ({"name": ""}, "name", RejectCode.INVALID_FIELD),
        ({"tenant": "\0"}, "tenant", RejectCode.INVALID_FIELD),
        ({"content_type": ""}, "content_type", RejectCode.INVALID_FIELD),
        ({"max_retries": -1}, "max_retries", RejectCode.INVALID_FIELD),
        ({"max_retries": bounds.RETRIES_MAX + 1}, "max_retries", RejectCode.INVALID_FIELD),
        ({"retry_base_delay_ms": -1}, "retry_base_delay_ms", RejectCode.INVALID_FIELD),
        ({"retry_max_delay_ms": bounds.RETRY_DELAY_MAX_MS + 1}, "retry_max_delay_ms", RejectCode.INVALID_FIELD),
        ({"max_lost": True}, "max_lost", RejectCode.INVALID_FIELD),
        ({"deadline_ms": -5}, "deadline_ms", RejectCode.INVALID_FIELD),
        ({"start_deadline_ms": 1.5}, "start_deadline_ms", RejectCode.INVALID_FIELD),
        ({"retry_of": ""}, "retry_of", RejectCode.INVALID_FIELD),
        ({"tags": ("a", "")}, "tags[1]", RejectCode.INVALID_FIELD),
        ({"timeout_ms": 0}, "timeout_ms", RejectCode.INVALID_FIELD),
    ],
)
def test_a_specification_out_of_bounds_is_refused_by_field_and_code(
    change: dict[str, Any], field: str, code: RejectCode
) -> None:
    problem = check_spec(replace(SPEC, **change))

    assert problem is not None
    assert (problem.field, problem.code) == (field, code)
    assert problem.message.startswith(field)


@pytest.mark.parametrize("text", ["x", "é", "😀", "\0"])
def test_the_size_of_a_payload_is_that_of_its_encoded_bytes(text: str) -> None:
    fits = bounds.PAYLOAD_MAX_BYTES // len(text.encode())

    assert check_payload((text * fits).encode()) is None
    problem = check_payload((text * (fits + 1)).encode())
    assert problem is not None
    assert problem.code is RejectCode.PAYLOAD_TOO_LARGE


def test_a_payload_may_hold_any_byte_and_round_trips() -> None:
    payload = json.dumps({"a": "x\0y"}).encode() + bytes(range(256))

    decoded = CODEC.decode(CODEC.encode(replace(SPEC, payload=payload)))

    assert check_payload(payload) is None
    assert isinstance(decoded, JobSpec)
    assert decoded.payload == payload


def test_the_largest_submit_fits_into_the_topic_of_commands_and_its_event_into_twice_that() -> None:
    # given text of four bytes a character wherever text may be
    wide = "😀"
    spec = JobSpec(
        job_id=wide * bounds.ID_MAX_CHARS,
        name=wide * bounds.NAME_MAX_CHARS,
        queue="q" * bounds.QUEUE_MAX_CHARS,
        priority=Priority.CRITICAL,
        tenant=wide * bounds.TENANT_MAX_CHARS,
        payload=b"x" * bounds.PAYLOAD_MAX_BYTES,
        content_type=wide * bounds.CONTENT_TYPE_MAX_CHARS,
        run_at_ms=bounds.INSTANT_MAX_MS,
        tags=tuple(chr(0x1F600 + n) * bounds.TAG_MAX_CHARS for n in range(bounds.TAGS_MAX)),
        retry_of=wide * bounds.ID_MAX_CHARS,
    )
    submit = SubmitJob(
        command_id=wide * bounds.ID_MAX_CHARS,
        actor=wide * bounds.ACTOR_MAX_CHARS,
        reason=wide * bounds.REASON_MAX_CHARS,
        requested_at_ms=bounds.INSTANT_MAX_MS,
        spec=spec,
    )

    assert check_command(submit) is None
    assert len(CODEC.encode(submit)) < bounds.RECORD_MAX_BYTES * 0.6


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        (("a", "a"), "repeats the tag 'a'"),
        (("a" * 129,), "tags[0] must have at most 128"),
        (tuple(str(n) for n in range(33)), "tags must be at most 32"),
        ((1,), "tags[0] must be a string"),
    ],
)
def test_tags_are_few_short_and_different(tags: tuple[Any, ...], says: str) -> None:
    problem = check_tags(tags)

    assert problem is not None
    assert says in problem.message


def test_a_result_has_a_bound_of_its_own() -> None:
    assert check_result(None) is None
    assert check_result(b"x" * bounds.RESULT_MAX_BYTES) is None
    assert check_result(b"x" * (bounds.RESULT_MAX_BYTES + 1)) is not None


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, True, "0.5", None])
def test_a_progress_is_a_finite_number_from_0_to_1(value: Any) -> None:
    assert check_progress(value) is not None
    assert check_progress(0.5) is None
    assert check_progress(1) is None


COMMON: dict[str, Any] = {"command_id": "c", "actor": "me", "requested_at_ms": 5}


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (CancelJob(**COMMON | {"job_id": ""}), "job_id"),
        (CancelJob(**COMMON | {"job_id": "j", "command_id": ""}), "command_id"),
        (CancelJob(**COMMON | {"job_id": "j", "actor": "a\0"}), "actor"),
        (CancelJob(**COMMON | {"job_id": "j", "reason": "r" * 1025}), "reason"),
        (CancelJob(**COMMON | {"job_id": "j", "requested_at_ms": -1}), "requested_at_ms"),
        (RescheduleJob(**COMMON | {"job_id": "j", "run_at_ms": -1}), "run_at_ms"),
        (RetryJob(**COMMON | {"job_id": "j", "new_job_id": "a@b"}), "new_job_id"),
        (SubmitJob(**COMMON | {"spec": replace(SPEC, name="")}), "name"),
    ],
)
def test_a_command_is_refused_by_the_field_that_is_wrong(command: Any, field: str) -> None:
    problem = check_command(command)

    assert problem is not None
    assert problem.field == field


def test_commands_on_jobs_that_schedules_fired_are_accepted() -> None:
    assert check_command(CancelJob(**COMMON | {"job_id": "nightly@2026"})) is None
    assert check_command(RetryJob(**COMMON | {"job_id": "nightly@2026", "new_job_id": "again"})) is None


@given(text=st.text(max_size=300), size=st.integers(0, 200))
@example(text="x" * 300, size=100)
@example(text="\ud800", size=10)
def test_clipped_text_fits_and_can_be_encoded(text: str, size: int) -> None:
    clipped = clip(text, size)

    assert len(clipped) <= size
    assert clipped.encode().decode() == clipped
    if len(text) <= size:
        assert clipped == text.encode("utf-8", "replace").decode()


def test_clipped_text_keeps_both_ends_and_tells_what_is_missing() -> None:
    clipped = clip("begin" + "x" * 10_000 + "end", 200)

    assert clipped.startswith("begin")
    assert clipped.endswith("end")
    assert "10008 characters" in clipped
    assert len(clipped) == 200


def test_clipped_bytes_are_the_first() -> None:
    assert clip_bytes(b"abc", 2) == b"ab"
    assert clip_bytes(b"abc", 3) == b"abc"
