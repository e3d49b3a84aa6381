"""Quick constructors and copiers make the same records as the classes themselves."""

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from mainspring.schemas.build import copier, quick
from mainspring.schemas.events import JobSubmitted
from mainspring.schemas.job import JobSpec
from mainspring.schemas.tables import JobState
from mainspring.schemas.work import WorkOffered
from tests.core.spec import Partition

PARTITION = Partition().submit().dispatch()
RECORDS: list[Any] = [PARTITION.state(), PARTITION.events[0], PARTITION.offers[0], JobSpec(job_id="a", name="b")]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_quickly_made_record_is_the_record(record: Any) -> None:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    made = quick(type(record))(**values)
    assert made == record
    assert type(made) is type(record)
    assert hash(made) == hash(record)
    assert repr(made) == repr(record)
    assert pickle.loads(pickle.dumps(made)) == record  # noqa: S301 - our own bytes
    with pytest.raises(FrozenInstanceError):
        made.job_id = "other"


def test_a_quick_constructor_has_the_defaults_of_the_class() -> None:
    assert quick(JobSpec)(job_id="a", name="b") == JobSpec(job_id="a", name="b")


@pytest.mark.parametrize("kind", [JobState, JobSubmitted, WorkOffered])
def test_a_quick_constructor_refuses_missing_and_unknown_fields(kind: type[Any]) -> None:
    with pytest.raises(TypeError, match="missing"):
        quick(kind)()
    with pytest.raises(TypeError, match="unexpected"):
        quick(kind)(nonsense=1)


def test_a_copier_changes_what_it_is_given_and_nothing_else() -> None:
    state = PARTITION.state()
    assert copier(JobState, "revision", "lost")(state, revision=9, lost=2) == replace(state, revision=9, lost=2)


def test_a_copier_of_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="JobState has no field nonsense"):
        copier(JobState, "nonsense")
