"""What a process says about itself: lines for people or JSON lines for machines, always on stderr."""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import Processor

__all__ = ["configure_logging", "get_logger"]

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logging(*, style: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Send structlog's and the standard library's records to `stream` (stderr) as `console` or `json` lines.

    `auto` is `console` on a terminal and `json` elsewhere. Colours follow the terminal and `NO_COLOR`.
    """
    out = stream or sys.stderr
    as_json = style == "json" or (style == "auto" and not out.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=as_json),
        structlog.processors.StackInfoRenderer(),
    ]
    if as_json:
        shared.append(structlog.processors.format_exc_info)
    renderer: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=_colours(out), pad_event_to=36)
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A structured logger: `log.info("what happened", job_id=…)`."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def _colours(stream: TextIO) -> bool:
    import os

    return stream.isatty() and not os.environ.get("NO_COLOR")
