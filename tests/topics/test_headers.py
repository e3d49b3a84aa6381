"""CloudEvents headers and trace context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.schemas import CancelJob, JobStarted
from mainspring.topics.headers import Headers, command_headers, event_headers, trace_headers

COMMAND = CancelJob(job_id="job-1", command_id="c-é", actor="me", requested_at_ms=5)
PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE: Headers = [("traceparent", PARENT)]


def test_a_command_carries_what_cloudevents_requires() -> None:
    assert dict(command_headers(COMMAND, "/billing")) == {
        "ce_specversion": b"1.0",
        "ce_id": "c-é".encode(),
        "ce_source": b"/billing",
        "ce_type": b"mainspring.CancelJob",
        "content-type": b"application/avro",
    }


def test_an_event_carries_its_own_id_and_the_trace_of_its_cause() -> None:
    headers = event_headers(JobStarted, "17-0", "/mainspring", TRACE)

    assert dict(headers)["ce_id"] == b"17-0"
    assert dict(headers)["ce_type"] == b"mainspring.JobStarted"
    assert headers[-1] == ("traceparent", PARENT)


def test_headers_of_one_record_are_not_shared_with_the_next() -> None:
    event_headers(JobStarted, "17-0", "/mainspring").append(("x", b"y"))

    assert "x" not in dict(event_headers(JobStarted, "17-1", "/mainspring"))


def test_trace_context_passes_and_other_headers_do_not() -> None:
    given_headers = [("other", b"x"), ("traceparent", PARENT), ("tracestate", b"a=b"), ("traceparent", b"second")]

    assert trace_headers(given_headers) == [("traceparent", PARENT), ("tracestate", b"a=b")]


@pytest.mark.parametrize(
    "headers",
    [
        None,
        [],
        [("tracestate", b"a=b")],
        [("traceparent", b"\xc3\x28")],
        [("traceparent", None)],
        [("traceparent", PARENT + b"\n")],
        [("traceparent", PARENT.upper())],
    ],
)
def test_a_trace_context_that_is_missing_or_malformed_is_left_behind(headers: Headers | None) -> None:
    assert trace_headers(headers) == []


def test_a_trace_state_that_is_too_long_is_left_behind_alone() -> None:
    assert trace_headers([*TRACE, ("tracestate", b"x" * 513)]) == TRACE


@given(st.lists(st.tuples(st.text(), st.none() | st.binary())))
def test_no_header_whatever_stops_the_reader(headers: list[tuple[str, bytes | None]]) -> None:
    assert trace_headers(headers) == []
