"""Did each job end as written down before? Told from the log, id by id."""

from collections.abc import Mapping
from dataclasses import dataclass

from mainspring.cli.demo.plan import Expected, Planned
from mainspring.cli.demo.story import Story
from mainspring.jobs.payload import JSON
from mainspring.schemas.common import JobStatus

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One job: what the plan wanted, what the log says, and in what they differ."""

    planned: Planned
    story: Story | None
    differences: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether the job ended as it must."""
        return not self.differences


def judge(plan: tuple[Planned, ...], stories: Mapping[str, Story]) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """A verdict for each job of the plan, and the ids in the log that no plan has."""
    verdicts = tuple(_judge(planned, stories.get(planned.job_id)) for planned in plan)
    known = {planned.job_id for planned in plan}
    return verdicts, tuple(sorted(set(stories) - known))


def _judge(planned: Planned, story: Story | None) -> Verdict:
    differences = ("the log does not know it",) if story is None else tuple(_differences(planned.expected, story))
    return Verdict(planned=planned, story=story, differences=differences)


def _differences(expected: Expected, story: Story) -> list[str]:
    found: list[str] = []
    if story.status is not expected.status:
        found.append(f"is {story.status.name} and must be {expected.status.name}")
    if story.ends != 1:
        found.append(f"has {story.ends} ends and must have one")
    if story.code != expected.code:
        found.append(f"ended with {story.code} and must with {expected.code}")
    attempts = expected.attempts - (story.lost_before(expected.attempts) if expected.by_number else 0)
    if story.counted != attempts:
        found.append(f"took {story.counted} attempts and must take {attempts}")
    if story.status is JobStatus.COMPLETED and _result(story) != expected.result:
        found.append(f"returned {_result(story)!r} and must return {expected.result!r}")
    early_ms = story.requested_at_ms + expected.not_before_ms - _first_start_ms(story)
    if early_ms > 0:
        found.append(f"started {early_ms} ms before its time")
    return found


def _result(story: Story) -> object:
    return None if story.result is None else JSON.decode(story.result)


def _first_start_ms(story: Story) -> int:
    """When it started; for a job that never did, a time that is never too early."""
    return story.attempts[0].started_at_ms if story.attempts else 1 << 62
