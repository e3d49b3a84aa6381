"""The client library's own log lines."""

import logging

from mainspring.telemetry import get_logger

__all__ = ["LibraryLog", "library_logger"]

_log = get_logger(__name__)


class LibraryLog(logging.Handler):
    """Takes over the client library's log lines, which would go to stderr past the process's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        _log.debug("kafka client", line=record.getMessage())


def library_logger(name: str, handler: logging.Handler | None = None) -> logging.Logger:
    """A logger for one client; its lines go to the process's own log."""
    # Not from the registry of loggers: each client has one of its own, and it goes with the client.
    logger = logging.Logger(f"librdkafka.{name}", logging.DEBUG)  # noqa: LOG001 - see above
    logger.addHandler(handler or LibraryLog(logging.DEBUG))
    return logger
