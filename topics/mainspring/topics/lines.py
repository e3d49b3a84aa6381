"""What librdkafka has to say, as records of the process's own log."""

import logging
import time

__all__ = ["LIBRARY_LOG", "Repeats", "Seldom"]

AGAIN_S = 30.0
KNOWN_MAX = 256


class Seldom:
    """Lets the same line through once in 30 s: librdkafka repeats one refused connection twenty times a second."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def is_due(self, line: str) -> bool:
        """Whether the line is new, or was last said a while ago. How long it took until an error is no news."""
        line, _, _ = line.partition(" (after ")
        now = time.monotonic()
        said_at = self._said.get(line)
        if said_at is not None and now - said_at < AGAIN_S:
            return False
        if len(self._said) >= KNOWN_MAX:
            self._said.clear()
        self._said[line] = now
        return True


class Repeats(logging.Filter):
    """Lets the same line of a log through once in 30 s."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is due."""
        return self._seldom.is_due(record.getMessage())


LIBRARY_LOG = logging.getLogger("mainspring.librdkafka")
"""Takes librdkafka's lines, which would else go to stderr past the process's own log."""
LIBRARY_LOG.addFilter(Repeats())
