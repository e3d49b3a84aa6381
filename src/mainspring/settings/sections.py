"""The sections of the settings; every field's docstring is its documentation."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

from mainspring.settings.secrets import SecretUrl, is_secret_option

__all__ = [
    "HistorySection",
    "HttpSection",
    "KafkaSection",
    "LogSection",
    "QueueSection",
    "RegistrySection",
    "SchedulerSection",
    "TopicsSection",
    "ViewSection",
    "WorkerSection",
]

_STRATEGY = r"^(fifo|priority|aging|edf|[A-Za-z_][\w.]*:[A-Za-z_]\w*)$"
OptionValue = str | SecretStr
PositiveInt = Annotated[int, Field(gt=0)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65535)]


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _option(name: str, value: object) -> object:
    if isinstance(value, bool):
        value = "true" if value else "false"
    if not isinstance(value, str | int | float | SecretStr):
        raise ValueError(f"{name} must be text, a number or true/false")  # noqa: TRY004 - pydantic gathers ValueErrors only
    if isinstance(value, SecretStr):
        return value
    return SecretStr(str(value)) if is_secret_option(name) else str(value)


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]


class Section(BaseModel):
    """What all sections share: a name that is not known is an error, values are fixed, docstrings are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=True)


class KafkaSection(Section):
    """How to reach the Kafka cluster."""

    bootstrap: Annotated[str, Field(min_length=1)] = "127.0.0.1:9092"
    """Brokers to begin with: `host:port`, several separated by commas."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Whether the connection is encrypted and authenticated."""
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"] | None = None
    """How the client proves who it is; needed with `SASL_…` protocols."""
    sasl_username: str | None = None
    """User name for SASL."""
    sasl_password: SecretStr | None = None
    """Password for SASL."""
    ssl_ca_location: Path | None = None
    """File with the certificates that the brokers' own are checked against; the system's when absent."""
    options: dict[str, OptionValue] = Field(default_factory=dict)
    """Any librdkafka option (`socket.timeout.ms`), except those that the guarantees rest on. In the name of a
    variable underscores stand for dots: `MAINSPRING_KAFKA__OPTIONS__SOCKET_TIMEOUT_MS`."""

    @field_validator("options", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return (
            {str(name): _option(str(name), option) for name, option in value.items()}
            if isinstance(value, dict)
            else value
        )


class TopicsSection(Section):
    """Which topics there are, and how they are made."""

    prefix: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")] = "mainspring."
    """Begins the name of every topic, group and transactional id; two installations on one cluster differ in it."""
    partitions: PositiveInt = 12
    """Partitions of `commands`, `followups`, `attempts`, `events` and the changelog; fixed once they are made."""
    work_partitions: PositiveInt = 12
    """Partitions of each work topic: at most so many workers share one queue and priority."""
    replication: PositiveInt = 1
    """Copies of every topic. One copy loses accepted jobs with its broker: use 3 where it matters."""
    min_isr: PositiveInt = 1
    """Copies that must have a record before it counts as written (`min.insync.replicas`): 2 with replication 3."""


class QueueSection(Section):
    """The rules of one queue."""

    strategy: Annotated[str, Field(pattern=_STRATEGY)] = "priority"
    """Which due job is offered first: `fifo` (due first), `priority`, `aging` (priority that grows with waiting), `edf`
    (earliest deadline), or `module:Class` of your own. The same for all schedulers."""
    age_rate: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.01
    """Priority levels that a due job gains per second of waiting, with strategy `aging`."""
    tenant_weights: dict[str, Weight] = Field(default_factory=dict)
    """Share of each tenant inside a priority, relative to the others; 1 for those not named."""


class SchedulerSection(Section):
    """The scheduler's processes."""

    slot: str | None = None
    """Stable name of this process among the schedulers (a StatefulSet's ordinal); by default host name and a number."""
    tables: Literal["rocksdb", "memory"] = "rocksdb"
    """Where the tables are kept beside their changelog: on disk, so that memory stays flat and a restart reads
    only what is new, or in memory."""
    state_dir: Path | None = None
    """Directory of the tables on disk, a cache that may be lost; by default `mainspring` in the user's state directory
    (`XDG_STATE_HOME`)."""
    processes: PositiveInt = 1
    """Scheduler processes to run under one supervisor."""
    transaction_timeout_ms: Annotated[int, Field(ge=1000, le=900_000)] = 3_000
    """How long the transaction of a dead process may hide what others wrote behind it."""
    session_timeout_ms: Annotated[int, Field(ge=1000, le=300_000)] | None = None
    """How long the group waits for a silent process before its partitions go to the others; by default as short as the
    brokers allow (`group.min.session.timeout.ms`), and at least 3 s."""
    static_member: bool = False
    """Whether the slot is its identity in the group, too: a restart within the session then moves no partition."""
    standby: bool = False
    """Whether the tables on disk follow the partitions of the other schedulers, too, so that one that takes over from a
    dead one reads only the last moment. Costs each scheduler the disk for all partitions; needs `tables` on disk."""
    max_batch: PositiveInt = 4_000
    """Inputs that one transaction takes at most."""
    linger_ms: Annotated[int, Field(ge=0, le=1_000)] = 20
    """How far apart transactions begin at least while one follows another; inputs gather meanwhile. Less starts jobs
    sooner and costs the brokers more; below what a transaction takes (some 15 ms) it changes nothing."""
    unknown_name_after_ms: Annotated[int, Field(ge=0)] = 600_000
    """How long no worker may know a job's name before the job is cancelled: longer than a rolling deploy takes."""


class WorkerSection(Section):
    """The workers' processes."""

    app: Names = ()
    """Where the jobs are: `module:attribute` of an `App`, several separated by commas."""
    id: str | None = None
    """Name of this worker, unique among all; by default host name and a random part."""
    static_member: bool = False
    """Whether `worker.id` is its identity in the group, too: while one that was killed comes back within the session
    (of the brokers' `group.min.session.timeout.ms`), the others go on, and it has the same offers again. One that ends
    leaves its offers to the others only after the session. Needs `worker.id`."""
    queues: Names = ("default",)
    """Queues to work for; separated by commas in an environment variable."""
    slots: PositiveInt = 10
    """Attempts that run at once in this process."""
    lease_ms: Annotated[int, Field(ge=500, le=3_600_000)] = 10_000
    """How long a silent worker keeps its attempts; what ran on a dead one runs again after this time. The same for
    schedulers and workers."""
    heartbeat_ms: PositiveInt = 3_000
    """How often a worker renews its leases: at least three times per lease."""
    drain_ms: Annotated[int, Field(ge=0)] = 30_000
    """How long running attempts may still take after SIGTERM, before they are handed back."""


class ViewSection(Section):
    """The view that `job list` and the console read, written by the projector."""

    url: SecretUrl = SecretUrl("sqlite:///mainspring-view.db")
    """`sqlite:///path` or `postgresql://user:password@host/name`."""


class RegistrySection(Section):
    """A schema registry that speaks the Confluent API; without one, schema ids come from the committed lock file."""

    url: SecretUrl | None = None
    """Base URL, such as `https://registry.example.com`."""
    username: str | None = None
    """User name for basic authentication."""
    password: SecretStr | None = None
    """Password for basic authentication."""


class HttpSection(Section):
    """The port of `/metrics`, `/livez`, `/readyz` and `/startupz`."""

    host: str = "127.0.0.1"
    """Address to listen on; `0.0.0.0` in a container."""
    port: Port = 0
    """Port to listen on; 0 takes a free one and logs it."""


class LogSection(Section):
    """What a process says about itself, on stderr."""

    format: Literal["auto", "console", "json"] = "auto"
    """Lines for people or JSON lines for machines; `auto` is `console` on a terminal and `json` elsewhere."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is written."""


class HistorySection(Section):
    """How many finished jobs stay in the scheduler's tables; the log keeps them all."""

    max_count: Annotated[int, Field(ge=0)] = 100_000
    """Finished jobs kept, over all partitions. A submit with the id of a kept job is refused as a duplicate."""
    max_age_s: Annotated[int, Field(ge=0)] = 7 * 24 * 3600
    """Seconds that a finished job is kept."""
