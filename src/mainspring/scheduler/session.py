"""One life of a `JobScheduler`, from start to stop: connections, follower, and processors if they are its own."""

from collections.abc import Callable

from mainspring.client.config import ClientConfig, default_actor
from mainspring.client.core import ClientCore
from mainspring.client.info import JobInfo
from mainspring.client.queries import Queries
from mainspring.client.schedules.core import ScheduleCore
from mainspring.client.steps import Steps, drive, wait
from mainspring.client.wire import Deadline
from mainspring.scheduler.embedded import EmbeddedProcessors
from mainspring.scheduler.follower import EventFollower, Followed
from mainspring.scheduler.memory import JobMemory
from mainspring.schemas import Codec

__all__ = ["Session"]


class Session:
    """What is open while a scheduler runs. `open` and the `close_…` methods block; `get` is steps."""

    def __init__(
        self,
        config: ClientConfig | None,
        processors: EmbeddedProcessors | None,
        deliver: Callable[[list[Followed]], None],
    ) -> None:
        self.processors = processors
        self._config = config
        self._deliver = deliver
        self._follower: EventFollower | None = None
        self._core: ClientCore | None = None
        self._queries: Queries | None = None

    @property
    def core(self) -> ClientCore:
        """The client below."""
        if self._core is None:
            raise RuntimeError("the session is not open")
        return self._core

    @property
    def schedules(self) -> ScheduleCore:
        """The client below, for schedules."""
        if self._core is None or self._queries is None:
            raise RuntimeError("the session is not open")
        return ScheduleCore(self._core, self._queries)

    def open(self) -> None:
        """Connect, begin to follow, then start the processors: no transition of theirs is missed."""
        config = self._config if self.processors is None else self._embedded(self.processors)
        if config is None:
            raise ValueError("a session without processors needs to be told where to connect")
        core = self._core = ClientCore(config)
        self._queries = Queries(core)
        topic = config.topology.events.name
        self._follower = EventFollower(core.wire.make_consumer, topic, core.wire.decode, self._deliver)
        self._follower.start(drive(core.wire.ends.all_committed()))
        if self.processors is not None:
            self.processors.start(config.connection)

    def get(self, job_id: str, memory: JobMemory, deadline: Deadline) -> Steps[JobInfo]:
        """The job by everything committed until now, this scheduler's own commands included."""
        core, follower, queries = self.core, self._follower, self._queries
        if follower is None or queries is None:
            raise RuntimeError("the session is not open")
        partition = core.wire.partition_of(job_id)
        yield from core.own_commands_decided([partition], deadline)
        end = yield from core.wire.ends.committed(partition)
        yield from wait(follower.reach(partition, end), deadline.left())
        known = memory.get(job_id)
        if known is not None:
            return known
        return (yield from queries.get(job_id, deadline, fresh=False))

    def close_connections(self) -> None:
        """Stop following and disconnect."""
        if self._follower is not None:
            self._follower.stop()
        if self._core is not None:
            self._core.close()
        if self._queries is not None:
            self._queries.close()

    def close(self) -> None:
        """Everything, in the order that loses nothing; safe after a start that failed half-way."""
        if self.processors is not None:
            self.processors.stop_worker()
            self.processors.stop_scheduler()
        self.close_connections()
        if self.processors is not None:
            self.processors.stop_kafka()

    @staticmethod
    def _embedded(processors: EmbeddedProcessors) -> ClientConfig:
        connection = processors.start_kafka()
        return ClientConfig(
            connection=connection, topology=processors.topology, codec=Codec.embedded(), actor=default_actor()
        )
