"""The script: submit, cancel, kill a worker and a scheduler in the middle, start them again, wait for every end."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mainspring.cli.demo import jobs
from mainspring.cli.demo.board import Board
from mainspring.cli.demo.errors import DemoError
from mainspring.cli.demo.fleet import Fleet
from mainspring.cli.demo.owners import Owners
from mainspring.cli.demo.plan import CANCEL_RUNNING, CANCEL_WAITING, PULSE, PULSE_EVERY_S, Planned, bound
from mainspring.cli.demo.recovery import Recovery, recovery
from mainspring.cli.demo.story import Story
from mainspring.cli.durations import format_duration
from mainspring.cli.show import plural
from mainspring.client import CatchUp, Every, Overlap, When
from mainspring.schemas.common import JobStatus

if TYPE_CHECKING:
    from mainspring.client import Client

__all__ = ["HEARTBEAT_MS", "LEASE_MS", "SCHEDULERS", "SESSION_MS", "WORKERS", "Director", "Kill"]

SCHEDULERS = ("scheduler-1", "scheduler-2")
WORKERS = ("worker-1", "worker-2")

LEASE_MS, HEARTBEAT_MS, SESSION_MS = 5_000, 1_500, 3_000
"""Half the defaults: a death shall be noticed while someone watches."""

PATIENCE_S = 60.0
_TICK_S = 0.2
_FIRST_PULSE_S = 2
_RUNNING_AT_KILL = 3
_ENDED_SHARE = 0.25
_ENDED_BETWEEN = 4
_NAMED = 5
_LEASE = f"lease {LEASE_MS // 1000} s"
_SESSION = f"session {SESSION_MS // 1000} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One `kill -9`: what it hit, how long until all of that went on elsewhere, and after what a death is noticed."""

    name: str
    pid: int
    hit: str
    recovered_ms: int
    noticed: str


class Director:
    """Leads the demo. `say` is told of each scene, in rich markup; `planned` of the plan once all its ids are known."""

    def __init__(
        self,
        *,
        plan: tuple[Planned, ...],
        fleet: Fleet,
        board: Board,
        owners: Owners,
        client: "Client",
        say: Callable[[str], None],
        planned: Callable[[tuple[Planned, ...]], None],
    ) -> None:
        self.plan = plan
        self._planned = planned
        self._fleet = fleet
        self._board = board
        self._owners = owners
        self._client = client
        self._say = say

    def wait_for_fleet(self) -> None:
        """Until every process is ready, and each scheduler has partitions."""
        started = time.monotonic()
        self._wait_until_ready()
        self._say(f"two schedulers, two workers and a projector are ready after {_since(started)}")

    def _wait_until_ready(self) -> None:
        unready = {member.name for member in self._fleet}

        def ready() -> bool:
            unready.difference_update({name for name in unready if self._fleet.unready(name) is None})
            return not unready and all(self._owners.of(name) for name in SCHEDULERS)

        def why() -> str:
            return "\n".join(f"{name}: {self._fleet.unready(name)}" for name in sorted(unready))

        self._until(ready, "every process to be ready, and both schedulers to have partitions", why)

    def play(self) -> tuple[Kill, ...]:
        """Everything from the first submit to the last end."""
        self._schedule()
        self._submit([planned for planned in self.plan if not planned.is_meanwhile and not planned.is_fired])
        self._cancel()
        worker = self._kill_worker(WORKERS[0])
        scheduler = self._kill_scheduler(SCHEDULERS[0])
        self._until(self._all_ended, "every job to end", self._unfinished)
        # Those that were started again have joined: the end shall be an end of all.
        self._wait_until_ready()
        return worker, scheduler

    def _schedule(self) -> None:
        """A recurring schedule, after the ids of all that it fires are written down."""
        first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=_FIRST_PULSE_S)
        self.plan = bound(self.plan, first)
        self._planned(self.plan)
        pulses = [planned for planned in self.plan if planned.is_fired]
        self._client.schedules.create(
            PULSE.name,
            When(Every(PULSE_EVERY_S, anchor=first), start=first),
            jobs.pulse.job(),
            reason="demo",
            overlap=Overlap.ALLOW_ALL,
            catch_up=CatchUp.ALL,
            max_runs=len(pulses),
        )
        self._say(f"schedule {PULSE.name} fires {len(pulses)} jobs, one every second, whoever is dead then")

    def _submit(self, planned: list[Planned]) -> None:
        started = time.monotonic()
        self._client.submit_many([job.submission for job in planned], reason="demo")
        self._say(f"{len(planned)} jobs submitted in {_since(started)}")

    def _cancel(self) -> None:
        """Some that wait for their time, and some that run."""
        for kind, status in ((CANCEL_WAITING, JobStatus.PENDING), (CANCEL_RUNNING, JobStatus.RUNNING)):
            ids = [planned.job_id for planned in self.plan if planned.kind is kind]
            self._until(self._are(ids, status), f"{', '.join(ids)} to be {status.name}", self._unfinished)
            for job_id in ids:
                self._client.cancel(job_id, "the demo says so", wait=False)
            self._say(f"{' and '.join(ids)} cancelled while {status.name}")

    def _are(self, ids: list[str], status: JobStatus) -> Callable[[], bool]:
        def is_so() -> bool:
            stories = self._board.stories
            return all(job_id in stories and stories[job_id].status is status for job_id in ids)

        return is_so

    def _kill_worker(self, name: str) -> Kill:
        enough = round(_ENDED_SHARE * len(self.plan))
        self._until(
            lambda: self._ended() >= enough and len(self._running_on(name)) >= _RUNNING_AT_KILL,
            f"{enough} jobs to end while {name} runs {_RUNNING_AT_KILL} attempts",
            self._unfinished,
        )
        running = self._running_on(name)
        pid, at_ms = self._kill(name, f"while it runs {plural(len(running), 'attempt')}")
        self._until(lambda: self._have_gone_on(running), f"the attempts of {name} to run elsewhere", self._unfinished)
        found = recovery(running, self._board.stories, at_ms)
        recovered_ms = found.recovered_ms(at_ms)
        self._say_recovery(found, recovered_ms)
        self._restart(name)
        return Kill(name=name, pid=pid, hit=plural(len(running), "attempt"), recovered_ms=recovered_ms, noticed=_LEASE)

    def _say_recovery(self, found: Recovery, recovered_ms: int) -> None:
        ended = f"; {found.ended} had just ended or been cancelled" if found.ended else ""
        if found.again:
            heir = " and ".join(sorted({attempt.worker_id for attempt in found.again}))
            many = len(found.again)
            runs = "runs" if many == 1 else "run"
            self._say(f"[green]{many} {runs} again on {heir}[/] {_duration(recovered_ms)} after the kill{ended}")
        else:
            self._say(f"none was lost{ended}")
        if found.waited:
            worst_ms = max(attempt.late_ms for attempt in found.waited)
            self._say(f"{len(found.waited)} more were due and not started then: the latest {_duration(worst_ms)} late")

    def _have_gone_on(self, running: Mapping[str, Story]) -> bool:
        """Whether jobs that ran at the kill have all started again, or ended."""
        stories = self._board.stories
        return all(
            stories[job_id].is_ended or len(stories[job_id].attempts) > len(then.attempts)
            for job_id, then in running.items()
        )

    def _kill_scheduler(self, name: str) -> Kill:
        before = self._ended()
        self._until(
            lambda: self._ended() >= before + _ENDED_BETWEEN and bool(self._owners.of(name)),
            f"{_ENDED_BETWEEN} more jobs to end",
            self._unfinished,
        )
        partitions = self._owners.of(name)
        hit = f"partitions {' '.join(map(str, partitions))}"
        pid, at_ms = self._kill(name, f"while it decides for {hit}")
        self._submit([planned for planned in self.plan if planned.is_meanwhile])
        self._until(
            lambda: all(self._board.decided_after(partition, at_ms) is not None for partition in partitions),
            f"{hit} to be decided for again",
            self._unfinished,
        )
        decided_ms = [at for partition in partitions if (at := self._board.decided_after(partition, at_ms)) is not None]
        recovered_ms = max(decided_ms) - at_ms
        heir = next(other for other in SCHEDULERS if other != name)
        self._say(f"[green]{hit} move to {heir}[/] and go on {_duration(recovered_ms)} after the kill")
        self._restart(name)
        return Kill(name=name, pid=pid, hit=hit, recovered_ms=recovered_ms, noticed=_SESSION)

    def _kill(self, name: str, while_: str) -> tuple[int, int]:
        """Returns its process id, and when it was dead in epoch milliseconds."""
        pid = self._fleet[name].pid
        self._fleet.kill(name)
        at_ms = time.time_ns() // 1_000_000
        self._say(f"[bold red]kill -9 {name}[/] (pid {pid}) {while_}")
        return pid, at_ms

    def _restart(self, name: str) -> None:
        self._fleet.start(name)
        self._say(f"{name} starts again (pid {self._fleet[name].pid})")

    def _until(self, is_so: Callable[[], bool], what: str, why: Callable[[], str]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            self._fleet.check()
            if time.monotonic() > deadline:
                raise DemoError(f"Waited {PATIENCE_S:.0f} s for {what}, in vain.", why=why())
            self._board.wait(_TICK_S)

    def _ended(self) -> int:
        return sum(story.is_ended for story in self._board.stories.values())

    def _all_ended(self) -> bool:
        return self._ended() == len(self.plan)

    def _running_on(self, worker_id: str) -> Mapping[str, Story]:
        stories = self._board.stories.items()
        return {job_id: story for job_id, story in stories if story.is_running and story.worker_id == worker_id}

    def _unfinished(self) -> str:
        stories = self._board.stories
        open_ = [planned.job_id for planned in self.plan if not _is_ended(stories.get(planned.job_id))]
        named = ", ".join(f"{job_id} ({_status(stories.get(job_id))})" for job_id in open_[:_NAMED])
        more = f" and {len(open_) - _NAMED} more" if len(open_) > _NAMED else ""
        return f"{len(open_)} of {len(self.plan)} jobs have not ended: {named}{more}"


def _is_ended(story: Story | None) -> bool:
    return story is not None and story.is_ended


def _status(story: Story | None) -> str:
    return "not accepted" if story is None else story.status.name


def _duration(ms: int) -> str:
    return format_duration(ms / 1000)


def _since(started: float) -> str:
    return format_duration(time.monotonic() - started)
