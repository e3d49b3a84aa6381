"""What users do: a mix of commands by the seed, good and bad, and the book of what was sent."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from mainspring.schemas import CancelJob, Codec, Command, JobSpec, Priority, RescheduleJob, RetryJob, SubmitJob
from mainspring.topics import Topology, partition_for
from tests.sim.jobs import KNOWN, LATER, UNKNOWN, Behaviour
from tests.sim.kafka import Link, SimBroker
from tests.sim.process import Process
from tests.sim.world import SECOND, World

__all__ = ["Load", "LoadShape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadShape:
    """How much, and how bad. Chances are per job."""

    jobs: int = 150
    span: int = 300 * SECOND
    bursts: int = 6
    """Jobs come in so many bursts, some of them due at one instant."""
    cancel: float = 0.15
    reschedule: float = 0.05
    retry: float = 0.05
    again: float = 0.1
    """The same command twice, as a client does that did not hear the answer."""
    poison: float = 0.03
    long: float = 0.07
    long_ms: int = 15_000
    """Jobs that take about so long, and their share."""
    alike: float = 0.0
    """So much of the jobs is one herd, of one lane and due at once: deeper than the room of a lane in memory."""


@dataclass(slots=True)
class Sent:
    """One command, and where it was written."""

    command: Command
    place: tuple[int, int] | None = None
    """Partition and offset."""


@dataclass(slots=True)
class Load:
    """The users, and what they have sent."""

    world: World
    broker: SimBroker
    topology: Topology
    codec: Codec
    shape: LoadShape
    sent: list[Sent] = field(default_factory=list)
    poison: list[tuple[str, int, int]] = field(default_factory=list)
    """Topic, partition and offset of records that nobody can read."""
    _process: Process = field(init=False)
    _link: Link = field(init=False)
    _count: int = 0

    def __post_init__(self) -> None:
        self._process = Process(self.world, "client")
        self._link = Link(self._process, self.broker)

    def start(self) -> None:
        """Plans everything."""
        rng, shape = self.world.rng, self.shape
        starts = [rng.randrange(shape.span) for _ in range(shape.bursts)]
        for number in range(shape.jobs):
            at = rng.choice(starts) + rng.randrange(2 * SECOND) if rng.random() < 0.7 else rng.randrange(shape.span)
            spec = self._spec(f"job-{number}", rng, rng.choice(starts))
            if shape.alike and rng.random() < shape.alike:
                at = starts[0] + rng.randrange(2 * SECOND)
                lane: dict[str, Any] = {"queue": "default", "priority": Priority.MEDIUM, "tenant": ""}
                spec = replace(spec, **lane, run_at_ms=None, delay_ms=None)
            self.world.at(at, lambda spec=spec: self._submit(spec))  # type: ignore[misc]
            self._plan_more(spec.job_id, at, rng)

    @property
    def last_due_ms(self) -> int:
        """The latest time that was asked for."""
        asked = [self.world.epoch_ms]
        for each in self.sent:
            if isinstance(each.command, SubmitJob):
                asked.append(each.command.spec.run_at_ms or 0)
            elif isinstance(each.command, RescheduleJob):
                asked.append(each.command.run_at_ms)
        return max(asked)

    def _plan_more(self, job_id: str, at: int, rng: Random) -> None:
        shape, world = self.shape, self.world
        if rng.random() < shape.cancel:
            world.at(at + rng.randrange(3 * SECOND), lambda: self._cancel(job_id))
        if rng.random() < shape.reschedule:
            world.at(at + rng.randrange(3 * SECOND), lambda: self._reschedule(job_id))
        if rng.random() < shape.retry:
            world.at(at + rng.randrange(60 * SECOND), lambda: self._retry(job_id))
        if rng.random() < shape.poison:
            world.at(at, self._spoil)

    def _spec(self, job_id: str, rng: Random, instant: int) -> JobSpec:
        shape, epoch_ms = self.shape, self.world.epoch_ms
        kind = rng.random()
        ms = (
            round(10 ** rng.uniform(1, 3.7))
            if kind >= shape.long
            else rng.randrange(shape.long_ms // 2, shape.long_ms * 2)
        )
        fails = rng.choice([0, 0, 0, 0, 0, 0, 1, 2, -1])
        behaviour = Behaviour(ms=ms, fails=fails, deaf=rng.random() < 0.1, for_good=rng.random() < 0.05)
        when = rng.random()
        return JobSpec(
            job_id=job_id,
            name=rng.choices([KNOWN, LATER, UNKNOWN], [0.95, 0.03, 0.02])[0],
            queue="nowhere" if rng.random() < 0.01 else rng.choice(self.topology.queues),
            priority=rng.choice(list(Priority)),
            tenant=rng.choice(["", "", "a", "b"]),
            payload=behaviour.payload(),
            run_at_ms=epoch_ms + instant // 1000 if when < 0.2 else None,
            delay_ms=rng.randrange(20_000) if 0.2 <= when < 0.4 else None,
            timeout_ms=rng.randrange(200, 5_000) if rng.random() < 0.15 else None,
            max_retries=rng.randrange(3),
            retry_base_delay_ms=rng.randrange(100, 2_000),
            retry_max_delay_ms=5_000,
            max_lost=rng.choice([3, 3, 3, 0]),
            start_deadline_ms=epoch_ms + (instant + 30 * SECOND) // 1000 if rng.random() < 0.05 else None,
        )

    def _submit(self, spec: JobSpec) -> None:
        again = self.world.rng.random() < self.shape.again
        self.send(
            SubmitJob(command_id=self.command_id(), actor="user", requested_at_ms=self.now_ms(), spec=spec),
            spec.job_id,
            again=again,
        )
        if again and self.world.rng.random() < 0.3:
            # Another command for the same id: refused as a duplicate.
            self.send(
                SubmitJob(command_id=self.command_id(), actor="user", requested_at_ms=self.now_ms(), spec=spec),
                spec.job_id,
            )

    def _cancel(self, job_id: str) -> None:
        command = CancelJob(job_id=job_id, command_id=self.command_id(), actor="user", requested_at_ms=self.now_ms())
        self.send(command, job_id, again=self.world.rng.random() < self.shape.again)

    def _reschedule(self, job_id: str) -> None:
        command = RescheduleJob(
            job_id=job_id,
            command_id=self.command_id(),
            actor="user",
            requested_at_ms=self.now_ms(),
            run_at_ms=self.now_ms() + self.world.rng.randrange(30_000),
        )
        self.send(command, job_id, again=self.world.rng.random() < self.shape.again)

    def _retry(self, job_id: str) -> None:
        command = RetryJob(
            job_id=job_id,
            command_id=self.command_id(),
            actor="user",
            requested_at_ms=self.now_ms(),
            new_job_id=f"{job_id}-again",
        )
        self.send(command, job_id, again=self.world.rng.random() < self.shape.again)

    def _spoil(self) -> None:
        """A record that nobody can read, or one on the wrong partition, or with a wrong key."""
        rng = self.world.rng
        kind = rng.randrange(3)
        if kind == 0:
            topic = rng.choice([self.topology.commands, self.topology.attempts])
            place = (topic.name, rng.randrange(topic.partitions))
            value = rng.choice([b"", b"garbage", b"\x00\x00\x00\x00\x7fmore", rng.randbytes(20)])

            def write() -> None:
                offset = self.broker.log(place).append([(b"poison", value)])
                self.poison.append((place[0], place[1], offset))

            self._link.call(write)
            return
        spec = self._spec(f"astray-{self._count}", rng, 0)
        command = SubmitJob(command_id=self.command_id(), actor="user", requested_at_ms=self.now_ms(), spec=spec)
        key = spec.job_id.encode()
        home = partition_for(key, self.topology.commands.partitions)
        if kind == 1:
            self._write(command, key, (home + 1) % self.topology.commands.partitions)
        else:
            self._write(command, b"another key", home)

    def send(self, command: Command, key_text: str, *, again: bool = False) -> None:
        """Sends a command about a job or a schedule; `again`: once more, a little later."""
        key = key_text.encode()
        home = partition_for(key, self.topology.commands.partitions)
        self._write(command, key, home)
        if again:
            delay = self.world.rng.randrange(5 * SECOND)
            self.world.after(delay, lambda: self._write(command, key, home))

    def _write(self, command: Command, key: bytes, partition: int) -> None:
        sent = Sent(command)
        self.sent.append(sent)
        value = self.codec.encode(command)
        log = self.broker.log((self.topology.commands.name, partition))

        def write() -> None:
            sent.place = (partition, log.append([(key, value)]))

        self._link.call(write)

    def command_id(self) -> str:
        """The id of the next command."""
        self._count += 1
        return f"command-{self._count}"

    def now_ms(self) -> int:
        """The time, as users know it."""
        return self.world.true_ms
