"""What encoding and decoding a record costs, compiled and with fastavro, in µs of CPU time per record.

    python benchmarks/codec.py [--rounds 5] [--number 20000] [-o json]

Figures are the best of several rounds. `encode` is of a record whose specification remembers its bytes, as the
scheduler has it; `fresh` is of one that was just made, as a client has it.
"""

import argparse
import io
import json
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from typing import Any

import fastavro

from mainspring.schemas import (
    AttemptClaimed,
    Cause,
    CauseSource,
    Codec,
    Dispatch,
    JobSpec,
    JobStarted,
    JobState,
    JobStatus,
    JobSubmitted,
    Priority,
    SubmitJob,
    Txn,
    WorkOffered,
)
from mainspring.schemas.avro_types import newest
from mainspring.schemas.limits import check_spec

NOW_MS = 1_796_047_454_123
CODEC = Codec.embedded()


def samples() -> list[Any]:
    """One record of each kind that an ordinary job costs."""
    spec = JobSpec(job_id="job-00000001", name="send-mail", payload=b"x" * 63)
    cause = Cause(source=CauseSource.ATTEMPTS, partition=1, offset=123_456)
    worker: dict[str, Any] = {"worker_id": "worker-1", "incarnation": "abcdefgh12345678"}
    command: dict[str, Any] = {"command_id": "0123456789abcdef0123", "actor": "me", "requested_at_ms": NOW_MS}
    txn = Txn(id=4711, index=17, size=400)
    decided: dict[str, Any] = {
        "job_id": spec.job_id,
        "decided_at_ms": NOW_MS + 5,
        "cause": cause,
        "due_at_ms": NOW_MS,
        "txn": txn,
    }
    return [
        SubmitJob(**command, spec=spec),
        JobSubmitted(**decided, **command, revision=1, reason="", seq=99_000, spec=spec),
        WorkOffered(job_id=spec.job_id, attempt=1, offer=1, offered_at_ms=NOW_MS + 5, due_at_ms=NOW_MS, spec=spec),
        AttemptClaimed(job_id=spec.job_id, attempt=1, **worker, reported_at_ms=NOW_MS + 9, free_slot=True),
        JobStarted(**decided, **worker, revision=2, attempt=1),
        JobState(
            job_id=spec.job_id,
            revision=2,
            seq=99_000,
            status=JobStatus.RUNNING,
            queue="default",
            priority=Priority.MEDIUM,
            tenant="",
            submitted_at_ms=NOW_MS,
            due_at_ms=NOW_MS,
            attempt=1,
            retries=0,
            lost=0,
            **worker,
            started_at_ms=NOW_MS + 12,
            submit_command_id="0123456789abcdef0123",
            dispatch=Dispatch(),
        ),
    ]


def to_plain(value: Any) -> Any:
    """A record as the dicts that fastavro takes."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, IntEnum):
        return value.name
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def with_fresh_spec(record: Any) -> Any:
    """A copy whose specification remembers nothing."""
    return replace(record, spec=replace(record.spec)) if hasattr(record, "spec") else record


def measure(record: Any, best_of: Callable[[Callable[[], Any]], float]) -> dict[str, float | int | str]:
    """All figures of one record."""
    name = type(record).__name__
    encoded = CODEC.encode(record)
    decoded = CODEC.decode(encoded)
    schema = fastavro.parse_schema(newest()[name].schema)
    plain = to_plain(record)

    def oracle_encode() -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, plain)
        return stream.getvalue()

    def oracle_decode() -> Any:
        return fastavro.schemaless_reader(io.BytesIO(encoded[5:]), schema, None)

    assert oracle_encode() == encoded[5:], name
    copying = best_of(lambda: with_fresh_spec(record))
    fresh = best_of(lambda: CODEC.encode(with_fresh_spec(record))) - copying
    return {
        "record": name,
        "bytes": len(encoded),
        "encode_us": round(best_of(lambda: CODEC.encode(decoded)), 2),
        "fresh_us": round(fresh, 2),
        "decode_us": round(best_of(lambda: CODEC.decode(encoded)), 2),
        "fastavro_encode_us": round(best_of(oracle_encode), 2),
        "fastavro_decode_us": round(best_of(oracle_decode), 2),
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--number", type=int, default=20_000)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    given = parser.parse_args()

    def best_of(call: Callable[[], Any]) -> float:
        def one_round() -> float:
            started_ns = time.process_time_ns()
            for _ in range(given.number):
                call()
            cost_us: float = (time.process_time_ns() - started_ns) / 1000 / given.number
            return cost_us

        return min(one_round() for _ in range(given.rounds))

    figures = [measure(record, best_of) for record in samples()]
    spec = samples()[0].spec
    check_us = round(best_of(lambda: check_spec(spec)), 2)
    if given.output == "json":
        print(json.dumps({"records": figures, "check_spec_us": check_us}, indent=2))
        return
    print(f"{'record':<16}{'bytes':>6}{'encode':>9}{'fresh':>9}{'decode':>9}{'fastavro encode':>18}{'decode':>9}  µs")
    for figure in figures:
        name, size, *costs = figure.values()
        widths = (9, 9, 9, 18, 9)
        print(f"{name:<16}{size:>6}" + "".join(f"{cost:>{width}}" for cost, width in zip(costs, widths, strict=True)))
    print(f"check_spec {check_us} µs")


if __name__ == "__main__":
    main()
