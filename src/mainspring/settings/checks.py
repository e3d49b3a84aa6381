"""Checks that span settings: what cannot work, and what works but is dangerous."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.settings.model import Settings

__all__ = ["Check", "check_all", "warnings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule: the settings it looks at, the first being the one to change, and a message when it is broken."""

    paths: tuple[str, ...]
    broken: Callable[["Settings"], str | None]


def check_all(settings: "Settings") -> Iterator[tuple[Check, str]]:
    """The broken rules with their messages."""
    for check in CHECKS:
        if (message := check.broken(settings)) is not None:
            yield check, message


def warnings(settings: "Settings") -> list[str]:
    """What works but loses a promise; each says which."""
    found = []
    topics = settings.topics
    if topics.replication == 1:
        found.append(
            "topics.replication is 1: every topic has one copy, and accepted jobs are lost with its broker. "
            "Set MAINSPRING_TOPICS__REPLICATION=3 and MAINSPRING_TOPICS__MIN_ISR=2 on a cluster that matters."
        )
    elif topics.min_isr == 1:
        found.append(
            "topics.min_isr is 1: a record counts as written when one broker has it, and is lost with that broker. "
            "Set MAINSPRING_TOPICS__MIN_ISR=2."
        )
    if settings.kafka.security_protocol == "SASL_PLAINTEXT":
        found.append("kafka.security_protocol is SASL_PLAINTEXT: credentials and jobs cross the network in clear text.")
    if settings.http.host not in {"127.0.0.1", "localhost", "::1"}:
        found.append(
            f"http.host is {settings.http.host}: metrics and health are readable by anyone who reaches the port."
        )
    return found


def _heartbeat(settings: "Settings") -> str | None:
    beat, lease = settings.worker.heartbeat_ms, settings.worker.lease_ms
    if beat * 3 <= lease:
        return None
    return (
        f"three heartbeats ({beat} ms each) must fit into a lease ({lease} ms), or one lost heartbeat loses the lease"
    )


def _transaction(settings: "Settings") -> str | None:
    transaction, lease = settings.scheduler.transaction_timeout_ms, settings.worker.lease_ms
    if transaction < lease:
        return None
    return (
        f"a dead scheduler's transaction ({transaction} ms) must end before the leases it hides ({lease} ms), "
        "or living workers lose their attempts"
    )


def _standby(settings: "Settings") -> str | None:
    scheduler = settings.scheduler
    if not scheduler.standby or scheduler.tables == "rocksdb":
        return None
    return "a standby keeps the tables of all partitions on disk: set scheduler.tables to rocksdb, or leave standby out"


def _min_isr(settings: "Settings") -> str | None:
    copies, needed = settings.topics.replication, settings.topics.min_isr
    return (
        None if needed <= copies else f"{needed} in-sync copies cannot be had from {copies}: nothing could be written"
    )


def _queues(settings: "Settings") -> str | None:
    unknown = [name for name in settings.worker.queues if name not in settings.queues]
    if not unknown:
        return None
    declared = ", ".join(sorted(settings.queues))
    return f"{', '.join(unknown)}: no such queue; declare it under `queues` (declared: {declared})"


def _static_member(settings: "Settings") -> str | None:
    if not settings.worker.static_member or settings.worker.id is not None:
        return None
    return "an identity in the group must stay over restarts: set worker.id to a name that no other worker has"


def _sasl_protocol(settings: "Settings") -> str | None:
    kafka = settings.kafka
    wants = kafka.sasl_mechanism is not None or kafka.sasl_username is not None
    if wants and not kafka.security_protocol.startswith("SASL_"):
        return "SASL is set up, but kafka.security_protocol does not use it: set it to SASL_SSL"
    return None


def _sasl_password(settings: "Settings") -> str | None:
    kafka = settings.kafka
    needs = kafka.sasl_mechanism in {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
    if needs and (kafka.sasl_username is None or kafka.sasl_password is None):
        return f"{kafka.sasl_mechanism} needs kafka.sasl_username and kafka.sasl_password"
    return None


def _options(settings: "Settings") -> str | None:
    from mainspring.topics import PROTECTED_OPTIONS

    refused = [f"{name} ({PROTECTED_OPTIONS[name]})" for name in settings.kafka.options if name in PROTECTED_OPTIONS]
    return f"cannot be set, for the guarantees rest on it: {'; '.join(refused)}" if refused else None


CHECKS = (
    Check(paths=("kafka.options",), broken=_options),
    Check(paths=("worker.heartbeat_ms", "worker.lease_ms"), broken=_heartbeat),
    Check(paths=("scheduler.transaction_timeout_ms", "worker.lease_ms"), broken=_transaction),
    Check(paths=("scheduler.standby", "scheduler.tables"), broken=_standby),
    Check(paths=("topics.min_isr", "topics.replication"), broken=_min_isr),
    Check(paths=("worker.queues", "queues"), broken=_queues),
    Check(paths=("worker.static_member", "worker.id"), broken=_static_member),
    Check(paths=("kafka.security_protocol", "kafka.sasl_mechanism", "kafka.sasl_username"), broken=_sasl_protocol),
    Check(paths=("kafka.sasl_mechanism", "kafka.sasl_username", "kafka.sasl_password"), broken=_sasl_password),
)
