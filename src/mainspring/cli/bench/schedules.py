"""Many schedules with the same cron expression: how late the last of them is fired."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mainspring.cli.bench.limits import measure_limits
from mainspring.cli.bench.load import run_through
from mainspring.cli.bench.report import Figure, Report, lateness_of
from mainspring.cli.bench.site import Site
from mainspring.cli.errors import CliError

if TYPE_CHECKING:
    from mainspring.schemas import CreateSchedule

__all__ = ["measure"]

GOAL_FIRED_MS = 2_000.0
_HEAD_START_S = 4.0
_PATIENCE_S = 300.0
_CALL_S = 60.0
_READ = 4_000


def measure(site: Site, schedules: int, records: int) -> Report:
    """Creates `schedules` schedules that all fire at one second, once a day, and watches the events of that second.

    Fired is when the event is on the log, by the broker's clock: when others can see it.
    """
    limits = measure_limits(site, records)
    site.start()
    with site.client() as client, _Watch(site) as watch:
        rate = max(1, schedules // 5) / run_through(client, max(1, schedules // 5))
        due_s = int(time.time() + schedules / rate + _HEAD_START_S) + 1
        created_s = _create(site, watch, schedules, due_s)
        spare_s = due_s - time.time()
        meter = site.meter(site.scheduler, site.worker)
        watch.until(lambda: watch.ended >= schedules, "every instance to end")
        used = meter.read()
    fired = lateness_of([round(at_ms - due_s * 1e3) * 1_000_000 for at_ms in sorted(watch.fired_at_ms)])
    started = lateness_of([round(at_ms - due_s * 1e3) * 1_000_000 for at_ms in sorted(watch.started_at_ms)])
    per_fire_us = used.per_job_us(schedules)
    return Report(
        bench="schedules",
        what=f"{schedules:,} schedules with the same cron expression, fired at one second",
        data={
            "schedules": schedules,
            "created_per_s": round(schedules / created_s),
            "accepted_before_due_s": round(spare_s, 2),
            "first_ms": fired.first_ms,
            "p50_ms": fired.p50_ms,
            "p99_ms": fired.p99_ms,
            "max_ms": fired.max_ms,
            "started_p50_ms": started.p50_ms,
            "started_max_ms": started.max_ms,
            "cpu_us_per_fire": per_fire_us,
        },
        figures=(
            Figure(name="first fired, late", value=fired.first_ms, unit="ms"),
            Figure(name="half fired, late", value=fired.p50_ms, unit="ms"),
            Figure(name="last fired, late", value=fired.max_ms, unit="ms", goal=GOAL_FIRED_MS),
            Figure(name="last started, late", value=started.max_ms, unit="ms"),
            Figure(name="created", value=round(schedules / created_s), unit="schedules/s"),
            Figure(name="CPU per fire with its run, scheduler", value=per_fire_us.get("scheduler"), unit="µs"),
        ),
        limits=limits,
    )


def _create(site: Site, watch: "_Watch", schedules: int, due_s: int) -> float:
    """Returns when all are accepted; the seconds that it took. Raises `CliError` when it took too long."""
    from confluent_kafka import Producer

    from mainspring.topics import partition_for

    topic, codec = site.settings.topology().commands, site.settings.codec()
    producer = Producer(site.settings.connection().producer_config(**{"linger.ms": 20}))
    began_s = time.monotonic()
    for command in _commands(schedules, due_s):
        key = command.spec.schedule_id.encode()
        value, home = codec.encode(command), partition_for(key, topic.partitions)
        while not _try_produce(producer, topic.name, value, key, home):
            producer.poll(0.05)
    if producer.flush(_CALL_S):
        raise CliError("The broker does not take the commands.", why=f"some are unacknowledged after {_CALL_S:.0f} s")
    watch.until(lambda: watch.created >= schedules, "every schedule to be accepted")
    if watch.last_created_ms >= due_s * 1_000:
        raise CliError(
            f"{schedules:,} schedules were not accepted before they were due, so some would fire tomorrow.",
            hint="Measure fewer, with --schedules, or when the machine has less to do.",
        )
    return time.monotonic() - began_s


def _commands(schedules: int, due_s: int) -> "Sequence[CreateSchedule]":
    from mainspring.schemas import CreateSchedule, CronRule, JobSpec, ScheduleSpec, ScheduleTiming

    at = datetime.fromtimestamp(due_s, UTC)
    rule = CronRule(expression=f"{at.second} {at.minute} {at.hour} * * *", seconds=True)
    timing, job = ScheduleTiming(rules=(rule,)), JobSpec(job_id="", name="noop", payload=b"{}")
    now_ms = time.time_ns() // 1_000_000
    return [
        CreateSchedule(
            command_id=f"bench-{number}",
            actor="bench",
            requested_at_ms=now_ms,
            spec=ScheduleSpec(schedule_id=f"bench-{number:06}", timing=timing, job=job),
        )
        for number in range(schedules)
    ]


def _try_produce(producer: Any, topic: str, value: bytes, key: bytes, partition: int) -> bool:
    try:
        producer.produce(topic, value, key, partition)
    except BufferError:
        return False
    return True


@dataclass(slots=True)
class _Watch:
    """Reads the events that come in from its making on, and keeps what they tell of schedules."""

    site: Site
    created: int = 0
    last_created_ms: int = 0
    ended: int = 0
    fired_at_ms: list[int] = field(default_factory=list)
    started_at_ms: list[int] = field(default_factory=list)
    _consumer: Any = None
    _codec: Any = None

    def __enter__(self) -> Self:
        from confluent_kafka import Consumer, TopicPartition

        self._codec = self.site.settings.codec()
        topic = self.site.settings.topology().events
        own = {"group.id": f"{self.site.prefix}client.bench", "auto.offset.reset": "error"}
        self._consumer = Consumer(self.site.settings.connection().consumer_config(**own))
        places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        for place in places:
            _, place.offset = self._consumer.get_watermark_offsets(place, timeout=_CALL_S)
        self._consumer.assign(places)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Reads until the condition holds. Raises `CliError` where it does not in five minutes."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while not condition():
            if time.monotonic() > deadline_s:
                raise CliError(f"Waited {_PATIENCE_S:.0f} s for {what}, in vain.")
            for process in (self.site.scheduler, self.site.worker):
                process.check()
            first = self._consumer.poll(0.2)
            for message in () if first is None else (first, *self._consumer.consume(_READ, 0)):
                if message.error() is None:
                    self._take(message)

    def _take(self, message: Any) -> None:
        from mainspring.schemas import InstanceEnded, JobStarted, OccurrenceFired, ScheduleCreated

        event = self._codec.decode(message.value())
        match event:
            case ScheduleCreated():
                self.created += 1
                self.last_created_ms = max(self.last_created_ms, event.decided_at_ms)
            case OccurrenceFired():
                self.fired_at_ms.append(message.timestamp()[1])
            case JobStarted() if "@" in event.job_id:
                self.started_at_ms.append(event.decided_at_ms)
            case InstanceEnded():
                self.ended += 1
            case _:
                pass  # the jobs of the warm-up
