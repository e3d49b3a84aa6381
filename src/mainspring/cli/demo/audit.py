"""The proof at the end: every story read again from the log, judged against the plan, and the whole log audited."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mainspring.cli.connect import connection_of
from mainspring.cli.demo.plan import Planned
from mainspring.cli.demo.story import Story, tell
from mainspring.cli.demo.verdict import Verdict, judge
from mainspring.log.kafka import KafkaLog
from mainspring.log.verify import VerifyReport, verify
from mainspring.schemas import JOB_EVENT_TYPES
from mainspring.schemas.records import JobEvent

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["Proof", "audit", "wait_for_view"]

_VIEW_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was checked at the end. `problems` are what no job and no audit tells, a sentence each."""

    verdicts: tuple[Verdict, ...]
    report: VerifyReport
    problems: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether all is as it must be."""
        return not self.problems and self.report.ok and all(verdict.is_right for verdict in self.verdicts)


def audit(settings: "Settings", plan: tuple[Planned, ...], problems: Sequence[str]) -> Proof:
    """Judges and audits by the log alone; the view is compared with it. `problems` are those known before."""
    from mainspring.processors.projector.view import View

    codec = settings.codec()
    with (
        View(settings.view.url.get_secret_value()) as view,
        KafkaLog(connection_of(settings), settings.topology()) as log,
    ):
        verdicts, unplanned = judge(plan, _stories(log, settings))
        report = verify(log, codec, view=view)
    more = [f"the log has jobs that were not planned: {', '.join(unplanned)}"] if unplanned else []
    return Proof(verdicts=verdicts, report=report, problems=(*problems, *more))


def _stories(log: KafkaLog, settings: "Settings") -> dict[str, Story]:
    codec, topic = settings.codec(), settings.topology().events
    stories: dict[str, Story] = {}
    for (_, partition), span in log.spans([topic]).items():
        for batch in log.read(topic, partition, span):
            for raw in batch:
                event = codec.decode(raw.value) if raw.value is not None else None
                if type(event) in JOB_EVENT_TYPES:
                    known = cast(JobEvent, event)
                    stories[known.job_id] = tell(stories.get(known.job_id) or Story(job_id=known.job_id), known)
    return stories


def wait_for_view(settings: "Settings", jobs: int) -> str | None:
    """Until the projector has seen every job end; what is wrong when it does not in time."""
    from mainspring.processors.projector.view import View

    deadline = time.monotonic() + _VIEW_S
    with View(settings.view.url.get_secret_value()) as view:
        while (ended := sum(n for s, n in view.counts().by_status.items() if s.is_terminal)) < jobs:
            if time.monotonic() > deadline:
                return f"the view has seen {ended} of {jobs} jobs end after {_VIEW_S:.0f} s"
            time.sleep(0.05)
    return None
