"""What every long-running command shares: logs, signals, the port for metrics and health."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.settings import Settings
    from mainspring.telemetry import Health

__all__ = ["Stop", "service"]


class Stop:
    """Set by SIGTERM or SIGINT; a second signal calls `hurry`, so that an operator need not reach for `kill -9`."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.hurry: Callable[[], None] | None = None

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """The signal handler."""
        if self.event.is_set() and self.hurry is not None:
            self.hurry()
        self.event.set()


@contextmanager
def service(settings: "Settings", role: str, *, warnings: bool = True) -> Iterator[tuple[Stop, "Health"]]:
    """Runs the body as a service: logs configured, warnings logged, signals caught, metrics and health served."""
    from mainspring.telemetry import Health, TelemetryServer, configure_logging, get_logger

    configure_logging(style=settings.log.format, level=settings.log.level)
    log = get_logger(f"mainspring.{role}")
    for text in settings.warnings() if warnings else ():
        # How the topics were made is told by what makes them and by the schedulers; a worker cannot change it.
        if role == "scheduler" or not text.startswith("topics."):
            log.warning(text)
    stop = Stop()
    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    health = Health()
    try:
        with TelemetryServer(health, host=settings.http.host, port=settings.http.port) as server:
            log.info(
                "starts", role=role, http=server.url, kafka=settings.kafka.bootstrap, prefix=settings.topics.prefix
            )
            yield stop, health
        log.info("stopped", role=role)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
