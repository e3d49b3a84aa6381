"""All stories so far, kept up to date by a thread that follows `events`; others wait for what they need to see."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from mainspring.cli.connect import connection_of
from mainspring.cli.demo.story import Story, tell
from mainspring.schemas import JOB_EVENT_TYPES
from mainspring.schemas.records import JobEvent

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["Board"]

Listener = Callable[[Story, JobEvent], None]
_JOIN_S = 5.0


class Board:
    """The stories of all jobs, by id. Its properties and methods may be used from any thread.

    `listener` is told, in the thread that follows, of each event and of the story that it led to.
    """

    def __init__(self, settings: "Settings", listener: Listener) -> None:
        self._settings = settings
        self._listener = listener
        self._changed = threading.Condition()
        self._stories: dict[str, Story] = {}
        self._decided_ms: defaultdict[int, list[int]] = defaultdict(list)
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._follow, name="demo-board", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(_JOIN_S)

    @property
    def stories(self) -> Mapping[str, Story]:
        """All stories at this moment."""
        with self._changed:
            return dict(self._stories)

    def decided_after(self, partition: int, at_ms: int) -> int | None:
        """When the first event of a partition after `at_ms` (epoch milliseconds) was decided; None: not yet."""
        with self._changed:
            return next((decided_ms for decided_ms in self._decided_ms[partition] if decided_ms > at_ms), None)

    def wait(self, timeout_s: float) -> None:
        """Returns when something has changed, or after the time. Raises what stopped the thread that follows."""
        with self._changed:
            if self._error is None:
                self._changed.wait(timeout_s)
            if self._error is not None:
                raise self._error

    def _follow(self) -> None:
        try:
            for partition, event in self._events():
                story = tell(self._stories.get(event.job_id) or Story(job_id=event.job_id), event)
                with self._changed:
                    self._stories[event.job_id] = story
                    self._decided_ms[partition].append(event.decided_at_ms)
                    self._changed.notify_all()
                self._listener(story, event)
        # Whatever it is, the main thread shall hear of it where it waits.
        except Exception as error:  # noqa: BLE001
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _events(self) -> Iterator[tuple[int, JobEvent]]:
        from mainspring.log.kafka import KafkaLog

        topology, codec = self._settings.topology(), self._settings.codec()
        starts = {(topology.events.name, partition): 0 for partition in range(topology.events.partitions)}
        with KafkaLog(connection_of(self._settings), topology) as log:
            for _, partition, raw in log.follow(starts, self._stop.is_set):
                event = codec.decode(raw.value or b"")
                if type(event) in JOB_EVENT_TYPES:
                    yield partition, cast(JobEvent, event)
