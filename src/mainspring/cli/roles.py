"""What the health of each role is made of."""

import time
from typing import TYPE_CHECKING

from mainspring.telemetry.metrics import LOOP_HEARTBEAT

if TYPE_CHECKING:
    from mainspring.processors.projector import Projector
    from mainspring.processors.scheduler import Scheduler
    from mainspring.telemetry import Health
    from mainspring.workers import Worker

__all__ = ["projector_health", "scheduler_health", "worker_health"]

# Shorter than max.poll.interval.ms: a loop that hangs is restarted before the group notices.
LOOP_MAX_AGE_S = 60.0
# Longer than a transaction takes that goes well. One that the brokers do not let end is tried for longer.
LOOP_READY_MAX_AGE_S = 15.0
CONTACT_MAX_AGE_S = 30.0
# Longer than brokers take that are restarted one by one.
LOST_MAX_S = 15.0
PROJECTOR_LAG_MAX = 10_000
# One batch may be a long statement of a busy database, and retention deletes in batches between two.
PROJECTOR_LOOP_MAX_AGE_S = 180.0


def scheduler_health(health: "Health", scheduler: "Scheduler") -> None:
    """Alive while its loop comes round, ready while every partition that it owns decides, started once that was so.

    It is not ready, and alive, while its loop is held up by a transaction that the brokers do not let end, and while
    there is none to talk to.
    """
    started_at_ms = time.monotonic_ns() // 1_000_000

    def age_s() -> float:
        # Between two engines there is no loop for a moment; the age then counts from the start.
        last_ms = scheduler.status().last_loop_ms or started_at_ms
        return (time.monotonic_ns() // 1_000_000 - last_ms) / 1000

    def ready() -> str | None:
        status, held_up_s = scheduler.status(), age_s()
        if held_up_s > LOOP_READY_MAX_AGE_S:
            return f"waits for the brokers: its loop has not come round for {held_up_s:.0f} s"
        if status.lost_s > LOST_MAX_S:
            return f"waits for the brokers: none has been connected for {status.lost_s:.0f} s"
        if status.restoring:
            return f"restores partitions {', '.join(map(str, status.restoring))}"
        return None if status.is_ready else "has not joined the group yet"

    LOOP_HEARTBEAT.labels(role="scheduler").set_function(lambda: time.time() - age_s())
    health.live("scheduler loop", lambda: _too_old(age_s()))
    health.ready("partitions", ready)
    health.startup("partitions", ready)


def worker_health(health: "Health", worker: "Worker") -> None:
    """Alive while its loop comes round, ready while it takes offers and the broker acknowledges what it reports."""

    def takes_offers() -> str | None:
        status = worker.status()
        if status.state.value != "running":
            return f"is {status.state.value}"
        if status.overdue >= status.slots:
            return f"all {status.slots} slots are held by calls that outlast their time-out"
        return None

    busy_since_s: float | None = None

    def contact() -> str | None:
        # Brokers that are connected and do not answer show in the reports of a worker that holds attempts. The first
        # report of an attempt takes its time, too.
        nonlocal busy_since_s
        status = worker.status()
        if status.lost_s > LOST_MAX_S:
            return f"no broker has been connected for {status.lost_s:.0f} s"
        if not status.running and not status.awaiting:
            busy_since_s = None
            return None
        now_s = time.monotonic()
        busy_since_s = now_s if busy_since_s is None else busy_since_s
        silent_s = min(now_s - busy_since_s, float("inf") if status.contact_age_s is None else status.contact_age_s)
        return f"no broker has acknowledged a heartbeat for {silent_s:.0f} s" if silent_s > CONTACT_MAX_AGE_S else None

    health.live("worker loop", lambda: _too_old(worker.status().loop_age_s))
    health.ready("worker", takes_offers)
    health.ready("contact", contact)
    health.startup("worker", takes_offers)


def projector_health(health: "Health", projector: "Projector") -> None:
    """Alive while its loop comes round, ready while it follows the log closely and its database answers."""

    def behind() -> str | None:
        status = projector.status()
        if status.error is not None:
            return f"waits: {status.error}"
        if not status.partitions:
            return "has not begun to read yet"
        return f"{status.lag} events behind" if status.lag > PROJECTOR_LAG_MAX else None

    def running() -> str | None:
        return None if projector.status().running else "does not run"

    LOOP_HEARTBEAT.labels(role="projector").set_function(lambda: time.time() - projector.status().loop_age_s)
    health.live("projector", running)
    health.live("projector loop", lambda: _too_old(projector.status().loop_age_s, PROJECTOR_LOOP_MAX_AGE_S))
    health.ready("projector lag", behind)
    health.startup("projector", running)


def _too_old(age_s: float, allowed_s: float = LOOP_MAX_AGE_S) -> str | None:
    return None if age_s <= allowed_s else f"has not come round for {age_s:.0f} s (allowed: {allowed_s:g} s)"
