"""Handlers and job classes: how they are declared, what payloads they read, what they refuse."""

import asyncio
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from mainspring.jobs import (
    App,
    AsyncJob,
    BlockingJob,
    ConcurrencyModel,
    CpuBoundJob,
    DuplicateJobNameError,
    Handler,
    HandlerSignatureError,
    JobContext,
    JobDefinitionError,
    JobPriority,
    JobStatus,
    NoCurrentJobError,
    PayloadMismatchError,
    ResultNotEncodableError,
    current_context,
    errors,
    to_spec,
)
from mainspring.jobs.payload import JSON
from mainspring.schemas.errors import MainspringError


class Colour(Enum):
    """An enum in a signature."""

    RED = "red"


@dataclass
class Point:
    """A dataclass in a signature."""

    x: int
    y: float = 0.0


CONTEXT = JobContext(job_id="j", name="n", attempt=1)


def call(handler: Handler, payload: bytes, content_type: str = "application/json") -> Any:
    result = handler.open(payload, content_type, CONTEXT)()
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


def test_the_model_follows_from_the_function() -> None:
    app = App("a")

    @app.job
    async def one() -> None: ...

    @app.job
    def two() -> None: ...

    assert one.handler.model is ConcurrencyModel.ASYNC
    assert two.handler.model is ConcurrencyModel.THREAD
    with pytest.raises(JobDefinitionError, match="cannot run as PROCESS"):
        app.job(name="x", model=ConcurrencyModel.PROCESS)(one._function)


def test_the_model_of_a_class_is_that_of_its_base() -> None:
    app = App("a")

    @app.register
    class One(AsyncJob):
        async def run(self) -> None: ...

    @app.register
    class Two(BlockingJob):
        def run_sync(self) -> None: ...

    @app.register(name="three")
    class Three(CpuBoundJob):
        def run_sync(self) -> None: ...

    assert [app.handlers[n].model.name for n in ("One", "Two", "three")] == ["ASYNC", "THREAD", "PROCESS"]
    assert Three.name == "three"
    assert issubclass(CpuBoundJob, BlockingJob)


def test_a_typed_signature_round_trips_what_json_lacks() -> None:
    app = App("a")
    given = {
        "when": datetime(2026, 5, 1, tzinfo=UTC),
        "colour": Colour.RED,
        "point": Point(1, 2.5),
        "key": uuid.uuid4(),
        "amount": Decimal("1.10"),
        "path": Path("/tmp/x"),
        "pairs": [(1, "a")],
        "names": {"b", "a"},
        "raw": b"bytes",
    }

    @app.job
    def typed(
        when: datetime, colour: Colour, point: Point, key: uuid.UUID, amount: Decimal, path: Path,
        pairs: list[tuple[int, str]], names: set[str], raw: bytes,
    ) -> dict[str, Any]:  # fmt: skip
        return locals()

    spec = to_spec(typed.job(**given))  # type: ignore[arg-type]  # a table of many types
    assert call(typed.handler, spec.payload) == given


@pytest.mark.parametrize(
    ("payload", "fields"),
    [
        (b'{"count":"10","to":"a"}', {"count"}),
        (b'{"count":1.5,"to":"a"}', {"count"}),
        (b'{"count":true,"to":"a"}', {"count"}),
        (b"{}", {"to"}),
        (b'{"to":"a","other":1}', {"other"}),
        (b'{"to":null,"count":[]}', {"to", "count"}),
        (b'{"to":"a","point":{"x":"no"}}', {"point.x"}),
        (b"[]", {""}),
        (b"{", {""}),
        (b"\xff", {""}),
        (b'{"to":NaN}', {"to"}),
    ],
)
def test_a_payload_that_does_not_fit_names_every_wrong_field(payload: bytes, fields: set[str]) -> None:
    @App("a").job
    def typed(to: str, count: int = 1, point: Point | None = None) -> None: ...

    with pytest.raises(PayloadMismatchError) as mismatch:
        call(typed.handler, payload)
    assert set(mismatch.value.fields) == fields or (not fields - {""} and mismatch.value.fields)
    for name in fields:
        assert name in str(mismatch.value)


def test_a_context_parameter_is_filled_in_and_is_no_argument() -> None:
    @App("a").job
    def told(word: str, context: JobContext) -> tuple[str, str]:
        return word, context.job_id

    assert call(told.handler, b'{"word":"w"}') == ("w", "j")
    with pytest.raises(PayloadMismatchError, match="context"):
        call(told.handler, b'{"word":"w","context":1}')


def test_a_mutable_default_is_a_default() -> None:
    @App("a").job
    def collect(items: list[int] = [1]) -> list[int]:  # noqa: B006  # what users write
        return items

    assert call(collect.handler, b"{}") == [1]


def test_parameters_that_no_payload_can_fill_are_refused_where_they_are_declared() -> None:
    app = App("a")

    def positional(a: int, /) -> None: ...
    def rest(*args: int) -> None: ...

    for function in (positional, rest):
        with pytest.raises(HandlerSignatureError, match="no name in a payload"):
            app.job(function)

    class Opaque:
        """Nothing that a payload can describe."""

    @app.job
    def opaque(thing: Opaque) -> None: ...

    with pytest.raises(HandlerSignatureError, match="opaque"):
        opaque.handler.prepare()


def test_a_process_job_must_be_importable() -> None:
    @App("a").job(model=ConcurrencyModel.PROCESS)
    def local() -> None: ...

    with pytest.raises(JobDefinitionError, match="top of a module"):
        local.handler.prepare()


def test_a_name_is_given_once() -> None:
    app = App("a")

    @app.job(name="same")
    def one() -> None: ...

    with pytest.raises(DuplicateJobNameError, match="'same'"):

        @app.job(name="same")
        def two() -> None: ...


def test_a_function_can_still_be_called() -> None:
    @App("a").job
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8
    assert double.__name__ == "double"


def test_a_subclass_is_a_dataclass_whether_it_says_so_or_not() -> None:
    class Plain(AsyncJob):
        to: str
        tags_: list[str] = field(default_factory=list)

        async def run(self) -> None: ...

    @dataclass
    class Said(AsyncJob):
        to: str
        tags_: list[str] = field(default_factory=list)

        async def run(self) -> None: ...

    @dataclass(slots=True)
    class Slotted(AsyncJob):
        to: str = "x"

        async def run(self) -> None: ...

    assert Plain("a", priority=JobPriority.HIGH).priority is JobPriority.HIGH
    assert Plain("a") == Plain("a") != Plain("b")
    assert Said("a").tags_ == []
    assert Said("a").tags_ is not Said("a").tags_
    assert Slotted().to == "x"


def test_terms_in_a_class_body_are_its_defaults_and_are_inherited() -> None:
    class Base(AsyncJob):
        queue = "slow"
        timeout = 3.0

        async def run(self) -> None: ...

    class Derived(Base):
        timeout = 5.0

    spec = to_spec(Derived(tenant="t"))
    assert (spec.queue, spec.timeout_ms, spec.tenant, spec.name) == ("slow", 5000, "t", "Derived")


@pytest.mark.parametrize("name", ["name", "queue", "timeout", "priority", "job_id"])
def test_a_payload_field_with_the_name_of_a_term_is_refused(name: str) -> None:
    with pytest.raises(JobDefinitionError, match=name):
        type("Bad", (AsyncJob,), {"__annotations__": {name: str}, "__module__": __name__})


def test_a_class_without_its_method_is_refused() -> None:
    with pytest.raises(JobDefinitionError, match=r"must define run\(\)"):
        App("a").register(type("Empty", (AsyncJob,), {"__module__": __name__}))


def test_another_codec_reads_and_writes_the_payloads_of_its_app() -> None:
    class Reversed:
        content_type = "application/x-reversed"

        def encode(self, value: Any) -> bytes:
            return JSON.encode(value)[::-1]

        def decode(self, data: bytes) -> Any:
            return JSON.decode(data[::-1])

    app = App("a", codec=Reversed())

    @app.job
    def double(n: int) -> int:
        return 2 * n

    spec = to_spec(double.job(4))
    assert (spec.content_type, spec.payload) == ("application/x-reversed", b'}4:"n"{')
    assert call(double.handler, spec.payload, spec.content_type) == 8
    assert double.handler.encode_result(12) == b"21"
    assert call(double.handler, b'{"n":5}') == 10, "JSON is always read"
    with pytest.raises(PayloadMismatchError, match="application/x-other"):
        call(double.handler, b"", "application/x-other")


def test_there_is_no_context_outside_of_a_job() -> None:
    with pytest.raises(NoCurrentJobError):
        current_context()


@pytest.mark.parametrize("fraction", [-0.01, 1.01, float("nan"), float("inf")])
def test_progress_outside_of_its_range_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        CONTEXT.progress(fraction)


def test_exactly_the_ended_states_are_terminal() -> None:
    assert {status.name for status in JobStatus if status.is_terminal} == {
        "COMPLETED",
        "FAILED",
        "TIMED_OUT",
        "CANCELLED",
    }


def test_every_error_is_drawn_in_the_tree_and_has_the_one_root() -> None:
    for name in errors.__all__:
        assert name in (errors.__doc__ or "")
        assert issubclass(getattr(errors, name), MainspringError)


class BytearrayCodec:
    """Looks like a codec and makes something that only looks like bytes."""

    content_type = "application/x-almost"

    def encode(self, value: Any) -> bytes:
        return bytearray(b"almost")  # type: ignore[return-value]  # the mistake that is tested

    def decode(self, data: bytes) -> Any:
        return {}


def test_a_result_that_a_codec_does_not_turn_into_bytes_fails_its_job_and_not_its_worker() -> None:
    app = App("almost", codec=BytearrayCodec())

    @app.job
    def one() -> int:
        return 1

    with pytest.raises(ResultNotEncodableError, match="made a bytearray of its result; it must make bytes"):
        one.handler.encode_result(1)
