"""Every metric of every process, in one registry; what a process does not do stays out of its page.

Base units, `_total` for counters, no label that grows without bound: never a job id, and at most `MAX_KINDS` job names.
"""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

__all__ = ["MAX_KINDS", "OTHER", "REGISTRY", "kind_label", "observe_many", "package_version"]

REGISTRY = CollectorRegistry(auto_describe=True)
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

MAX_KINDS = 200
OTHER = "other"

_LATENESS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_DURATION_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
_TXN_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3, 10, 30)


def _counter(name: str, what: str, *labels: str) -> Counter:
    return Counter(f"mainspring_{name}", what, labels, registry=REGISTRY)


def _gauge(name: str, what: str, *labels: str) -> Gauge:
    return Gauge(f"mainspring_{name}", what, labels, registry=REGISTRY)


def _histogram(name: str, what: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
    return Histogram(f"mainspring_{name}", what, labels, registry=REGISTRY, buckets=buckets)


# What is asked for and decided (schedulers).
COMMANDS = _counter("commands_total", "Commands decided, by type and outcome (accepted, rejected).", "type", "outcome")
EVENTS = _counter("events_total", "Events committed, by type.", "type")
JOBS = _gauge("jobs", "Jobs in the tables of this process's partitions, by queue and state.", "queue", "state")
RUN_LATENESS = _histogram(
    "run_lateness_seconds", "From the due time of a job to its confirmed start.", _LATENESS_S, "queue"
)
QUEUE_WAIT = _histogram("queue_wait_seconds", "From the submit of a job to its first start.", _LATENESS_S, "queue")

# Attempts and leases.
ATTEMPT_DURATION = _histogram(
    "attempt_duration_seconds", "Run time of attempts, by job name and outcome.", _DURATION_S, "kind", "outcome"
)
LEASES = _gauge("leases", "Leases held: attempts that run as far as the scheduler knows.", "queue")
LEASE_EXPIRATIONS = _counter("lease_expirations_total", "Attempts taken for lost because their lease ran out.", "queue")
STALE_RESULTS = _counter("stale_results_total", "Reports refused because the attempt was no longer theirs.", "queue")

# The transactional loop.
TXN_DURATION = _histogram("txn_duration_seconds", "From begin to the end of a transaction.", _TXN_S, "outcome")
TXN_ABORTS = _counter("txn_aborts_total", "Transactions aborted, by reason.", "reason")
PRODUCER_ROTATIONS = _counter("producer_rotations_total", "Producers replaced, by reason.", "reason")
FENCED = _counter("fenced_total", "Times this process was fenced by a newer one.", "role")
RESTORE_SECONDS = _histogram("restore_seconds", "Time to restore a partition's tables.", _DURATION_S, "store")
RESTORE_REMAINING = _gauge(
    "restore_remaining_records", "Changelog records still to be read before a partition is ready.", "store", "partition"
)
STANDBY_LAG = _gauge(
    "standby_lag_records", "Changelog records that a partition's warm standby here has yet to read.", "partition"
)
CONSUMER_LAG = _gauge("consumer_lag_records", "Records written but not yet processed.", "group", "topic", "partition")
PARTITION_OWNER = _gauge("partition_owner", "1 for each partition that this process owns.", "role", "partition")
REBALANCES = _counter("rebalances_total", "Times the partitions of this process changed.", "group")
DLQ_RECORDS = _counter("dlq_records_total", "Records put aside to dead-letters.", "topic", "reason")

# Workers.
WORKER_SLOTS = _gauge("worker_slots", "Attempts that this worker may run at once.")
WORKER_SLOTS_BUSY = _gauge("worker_slots_busy", "Slots in use, also by calls that outlast their time-out.")
PEAK_RUNNING = _gauge("worker_peak_running", "The most attempts that ran at once since the start.")
OFFERS = _counter("worker_offers_total", "Offers seen by this worker, by outcome.", "outcome")

# The process.
LOOP_HEARTBEAT = _gauge(
    "loop_heartbeat_timestamp_seconds",
    "When the main loop last came round (Unix time); alarms on a process that hangs.",
    "role",
)
BUILD_INFO = Info("mainspring_build", "What is running.", registry=REGISTRY)

_kinds: set[str] = set()
_kinds_lock = Lock()


def kind_label(name: str) -> str:
    """The job name as a label value; `other` for new names once `MAX_KINDS` have been seen: labels stay bounded."""
    if name in _kinds:
        return name
    with _kinds_lock:
        if len(_kinds) >= MAX_KINDS:
            return OTHER
        _kinds.add(name)
        return name


def observe_many(histogram: Histogram, values: Iterable[float]) -> None:
    """Observes many values at the cost of few: the library takes a lock and a walk for each."""
    bounds: list[float] = histogram._upper_bounds  # noqa: SLF001 - there is no public way to add to a bucket
    hits: Tally[int] = Tally()
    total = 0.0
    for value in values:
        hits[bisect_left(bounds, value)] += 1
        total += value
    for index, count in hits.items():
        histogram._buckets[index].inc(count)  # noqa: SLF001 - as above; a test compares it with `observe`
    histogram._sum.inc(total)  # noqa: SLF001 - as above


def package_version() -> str:
    """The installed version, or `unknown` when the package is not installed."""
    try:
        return version("mainspring")
    except PackageNotFoundError:
        return "unknown"


BUILD_INFO.info({"version": package_version()})
