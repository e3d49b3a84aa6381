"""What a schedule counts fits for as long as its log is read: every 100 ms passes 32 bits within seven years."""

from dataclasses import replace
from typing import Any

import pytest

from mainspring.schemas import Codec
from mainspring.schemas.avro_types import newest
from mainspring.schemas.schedule import ScheduleStatus
from mainspring.schemas.tables import ActiveInstance, Plan, ScheduleState
from tests.support.avro import fastavro_read

CODEC = Codec.embedded()
LARGE = 1 << 40
COUNTERS = frozenset({"revision", "count", "runs", "fired", "skipped", "failed", "fired_revision"})
FILES = [file for file in newest().values() if file.group == "schedule_events" or file.record == "ScheduleState"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.record)
def test_every_counter_of_a_schedule_has_64_bits(file: Any) -> None:
    kinds = {field["name"]: field["type"] for field in file.schema["fields"] if field["name"] in COUNTERS}

    assert "revision" in kinds
    assert set(kinds.values()) == {"long"}


def test_the_row_of_a_schedule_that_fired_a_trillion_times_is_written_and_read() -> None:
    young = ScheduleState(
        schedule_id="beat",
        revision=1,
        incarnation=1,
        version=1,
        status=ScheduleStatus.ACTIVE,
        created_at_ms=0,
        updated_at_ms=0,
        cursor_ms=0,
        busy_until_ms=0,
        triggered_ms=0,
        runs=0,
        fired=0,
        skipped=0,
        failed=0,
        create_command_id="c",
        plan=Plan(),
    )
    old = replace(
        young,
        revision=2 * LARGE,
        runs=LARGE,
        fired=LARGE,
        skipped=LARGE,
        failed=LARGE,
        active=(ActiveInstance(job_id="beat@x", nominal_ms=0, version=1, fired_revision=2 * LARGE),),
    )

    encoded = CODEC.encode(old)

    assert CODEC.decode(encoded) == old
    assert fastavro_read("ScheduleState", encoded[5:])["fired"] == LARGE
