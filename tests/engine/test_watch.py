"""A topic that is deleted and made again under a running scheduler stops it, with what to do."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from mainspring.processors.engine.errors import FaultKind, TopicReplacedError, TransactionError
from mainspring.processors.engine.watch import TopicWatch
from mainspring.schemas import JobSubmitted
from tests.engine.support import installation


@dataclass
class Answer:
    """An answer that comes when the test lets it."""

    value: str | Exception
    is_there: bool = True

    def done(self) -> bool:
        return self.is_there

    def result(self) -> str:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@dataclass
class FakeAdmin:
    """Tells the identity of topics, as the test has it."""

    identity: dict[str, Any] = field(default_factory=lambda: {"commands": "one", "attempts": "two"})
    asked: list[str] = field(default_factory=list)
    is_slow: bool = False

    def topic_id(self, topic: str) -> Answer:
        self.asked.append(topic)
        return Answer(self.identity[topic], is_there=not self.is_slow)


def watch(admin: FakeAdmin) -> TopicWatch:
    return TopicWatch(admin, list(admin.identity), every_ms=1_000)  # type: ignore[arg-type]  # the part of it that is called


def test_topics_that_stay_the_same_are_asked_for_once_in_a_while_and_nothing_else_happens() -> None:
    admin = FakeAdmin()
    mine = watch(admin)

    for now_ms in range(0, 2_500, 100):
        mine.look(now_ms)

    assert admin.asked == ["commands", "attempts"] * 3


def test_a_topic_that_is_another_one_than_before_stops_the_process_with_what_to_do() -> None:
    admin = FakeAdmin()
    mine = watch(admin)
    mine.look(0)
    mine.look(1)
    admin.identity["attempts"] = "another"
    mine.look(1_000)

    with pytest.raises(TopicReplacedError, match=r"attempts was deleted and made again .*\(its id was two, is anot"):
        mine.look(1_001)


def test_a_broker_that_does_not_answer_stops_nobody_and_is_asked_again() -> None:
    admin = FakeAdmin()
    mine = watch(admin)
    admin.identity["commands"] = TransactionError(FaultKind.RETRIABLE, "_TRANSPORT", "away")
    mine.look(0)
    mine.look(1)
    admin.is_slow = True
    mine.look(1_000)
    mine.look(5_000)

    assert admin.asked == ["commands", "attempts"] * 2, "one question at a time"


@pytest.mark.broker
def test_a_topic_that_is_made_again_under_a_running_scheduler_stops_it_on_a_real_broker(
    kafka: str, prefix: str
) -> None:
    with installation(kafka, prefix, partitions=1) as here:
        # Given a scheduler that knows its topics, and has decided something
        engine = here.engine("a")
        engine._watch._every_ms = 0
        here.submit(["one"])
        here.until(lambda: here.events(JobSubmitted))
        here.until(lambda: len(engine._watch._known) == len(engine._watch._topics))

        here.make_again(here.topology.scheduler_changelog.name)

        with pytest.raises(TopicReplacedError, match="scheduler-changelog was deleted and made again"):
            here.until(lambda: False)
