"""The check of the copy finds what it is there for."""

from types import SimpleNamespace
from typing import Any

import pytest

from mainspring.schemas import Cause, JobCancelled, JobSubmitted
from mainspring.schemas.common import CauseSource, Txn
from tests.proof.copy import Answer, assert_exact

ASKED: dict[str, list[Answer]] = {
    "one": [(JobSubmitted, 0, 5), (JobCancelled, 0, 7)],
    "other": [(JobSubmitted, 0, 6), (JobCancelled, 0, 8)],
}


def answer(job_id: str, kind: type, offset: int, source: CauseSource = CauseSource.COMMANDS) -> Any:
    """An event of which only the cause is looked at."""
    return kind(
        **dict.fromkeys(kind.__dataclass_fields__)  # type: ignore[attr-defined]  # every event is a dataclass
        | {
            "job_id": job_id,
            "cause": Cause(source=source, partition=0, offset=offset),
            "txn": Txn(id=1, index=0, size=1),
        }
    )


def board_of(**changes: list[Any]) -> Any:
    """A board that has seen the answers, but for some keys."""
    exact = {key: [answer(key, kind, offset) for kind, _, offset in answers] for key, answers in ASKED.items()}
    return SimpleNamespace(lives=exact | changes)


def test_a_copy_that_is_exact_passes() -> None:
    assert_exact(board_of(), ASKED)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([answer("one", JobSubmitted, 5)], id="lost"),
        pytest.param(
            [answer("one", JobSubmitted, 5), answer("one", JobCancelled, 7), answer("one", JobCancelled, 7)], id="twice"
        ),
        pytest.param([answer("one", JobCancelled, 7), answer("one", JobSubmitted, 5)], id="out of order"),
        pytest.param([answer("one", JobCancelled, 5), answer("one", JobCancelled, 7)], id="another answer"),
        pytest.param([answer("one", JobSubmitted, 5), answer("one", JobCancelled, 9)], id="of another command"),
        pytest.param([answer("one", JobSubmitted, 5), answer("one", JobCancelled, 7, CauseSource.TIMER)], id="unasked"),
    ],
)
def test_a_copy_that_is_not_exact_is_found(seen: list[Any]) -> None:
    with pytest.raises(AssertionError):
        assert_exact(board_of(one=seen), ASKED)


def test_a_key_that_nobody_asked_for_is_found() -> None:
    with pytest.raises(AssertionError):
        assert_exact(board_of(third=[answer("third", JobSubmitted, 9)]), ASKED)
