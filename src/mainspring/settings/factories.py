"""From settings to the configurations of the parts; each part is imported only when it is asked for."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mainspring.settings.secrets import reveal

if TYPE_CHECKING:
    from mainspring.processors.core.rules import Rules
    from mainspring.processors.core.strategies import SchedulingStrategy
    from mainspring.processors.projector import ProjectorConfig
    from mainspring.processors.scheduler import SchedulerConfig
    from mainspring.schemas import Codec
    from mainspring.settings.model import Settings
    from mainspring.settings.sections import QueueSection
    from mainspring.topics import Connection, Topology
    from mainspring.workers import WorkerConfig

__all__ = [
    "codec",
    "connection",
    "default_state_dir",
    "kafka_options",
    "projector_config",
    "rules",
    "scheduler_config",
    "topology",
    "worker_config",
]


def kafka_options(settings: "Settings") -> dict[str, Any]:
    """The librdkafka options that the settings ask for, secrets in clear."""
    kafka = settings.kafka
    named = {
        "security.protocol": None if kafka.security_protocol == "PLAINTEXT" else kafka.security_protocol,
        "sasl.mechanism": kafka.sasl_mechanism,
        "sasl.username": kafka.sasl_username,
        "sasl.password": reveal(kafka.sasl_password),
        "ssl.ca.location": str(kafka.ssl_ca_location) if kafka.ssl_ca_location else None,
    }
    given = {name: reveal(value) for name, value in kafka.options.items()}
    return {name: value for name, value in named.items() if value is not None} | given


def connection(settings: "Settings") -> "Connection":
    """How to reach Kafka."""
    from mainspring.topics import Connection

    return Connection(bootstrap=settings.kafka.bootstrap, options=kafka_options(settings))


def topology(settings: "Settings") -> "Topology":
    """The topics of this installation."""
    from mainspring.topics import Topology

    topics = settings.topics
    return Topology(
        prefix=topics.prefix,
        queues=tuple(settings.queues),
        partitions=topics.partitions,
        work_partitions=topics.work_partitions,
        replication=topics.replication,
        min_isr=topics.min_isr,
    )


def codec(settings: "Settings") -> "Codec":
    """The codec, with ids from the registry if one is set."""
    from mainspring.schemas import Codec

    registry = settings.registry
    if registry.url is None:
        return Codec.embedded()
    options: dict[str, str] = {}
    if registry.username is not None:
        password = registry.password.get_secret_value() if registry.password else ""
        options["basic.auth.user.info"] = f"{registry.username}:{password}"
    return Codec.from_registry(registry.url.get_secret_value(), options, topology(settings).subjects())


def rules(settings: "Settings") -> "Rules":
    """The rules that the scheduler decides by."""
    from mainspring.processors.core.rules import QueueRules, Rules

    return Rules(
        queues={
            name: QueueRules(strategy=_strategy(queue), tenant_weights=dict(queue.tenant_weights))
            for name, queue in settings.queues.items()
        },
        partitions=settings.topics.partitions,
        lease_ms=settings.worker.lease_ms,
        history_max_count=settings.history.max_count,
        history_max_age_ms=settings.history.max_age_s * 1000,
        unknown_name_after_ms=settings.scheduler.unknown_name_after_ms,
    )


def _strategy(queue: "QueueSection") -> "SchedulingStrategy":
    from mainspring.processors.core import strategies

    match queue.strategy:
        case "fifo":
            return strategies.FIFOStrategy()
        case "priority":
            return strategies.PriorityStrategy()
        case "aging":
            return strategies.AgingPriorityStrategy(queue.age_rate)
        case "edf":
            return strategies.EarliestDeadlineFirstStrategy()
        case custom:
            return _custom_strategy(custom)


def _custom_strategy(target: str) -> "SchedulingStrategy":
    from importlib import import_module

    from mainspring.processors.core.strategies import SchedulingStrategy

    module, _, name = target.partition(":")
    try:
        made = getattr(import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"strategy {target} cannot be imported: {error}; write it as module:Class") from error
    if not isinstance(made, SchedulingStrategy):
        raise TypeError(f"strategy {target} has no key(job): see mainspring.processors.core.strategies")
    return made


def default_state_dir() -> Path:
    """Where programs of this user keep what they may lose but rather would not."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "mainspring"


def scheduler_config(settings: "Settings") -> "SchedulerConfig":
    """What one scheduler process needs."""
    from mainspring.processors.scheduler import SchedulerConfig

    own = settings.scheduler
    return SchedulerConfig(
        connection=connection(settings),
        topology=topology(settings),
        codec=codec(settings),
        rules=rules(settings),
        slot=own.slot,
        state_dir=None if own.tables == "memory" else own.state_dir or default_state_dir(),
        transaction_timeout_ms=own.transaction_timeout_ms,
        session_timeout_ms=own.session_timeout_ms,
        static_member=own.static_member,
        max_batch=own.max_batch,
        linger_ms=own.linger_ms,
        standby=own.standby,
    )


def worker_config(settings: "Settings") -> "WorkerConfig":
    """What one worker process needs."""
    from mainspring.workers import WorkerConfig
    from mainspring.workers.config import default_worker_id

    worker = settings.worker
    return WorkerConfig(
        connection=connection(settings),
        topology=topology(settings),
        codec=codec(settings),
        worker_id=worker.id or default_worker_id(),
        queues=worker.queues,
        slots=worker.slots,
        static_member=worker.static_member,
        lease_ms=worker.lease_ms,
        heartbeat_ms=worker.heartbeat_ms,
        drain_ms=worker.drain_ms,
    )


def projector_config(settings: "Settings") -> "ProjectorConfig":
    """What one projector process needs."""
    from mainspring.processors.projector import ProjectorConfig

    return ProjectorConfig(
        connection=connection(settings),
        topology=topology(settings),
        codec=codec(settings),
        url=settings.view.url.get_secret_value(),
    )
