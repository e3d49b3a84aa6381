"""What a process says about itself: lines for people or JSON lines for machines, always on stderr."""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, TextIO, cast

import structlog
from structlog.dev import Column, KeyValueColumnFormatter
from structlog.typing import BindableLogger, Context, EventDict, Processor, WrappedLogger

__all__ = ["configure_logging", "get_logger"]

_RESET, _BOLD, _DIM, _CYAN = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[36m"
_LEVEL_STYLES = {"info": "\x1b[32m", "warning": "\x1b[1;33m", "error": "\x1b[1;31m", "critical": "\x1b[1;31m"}
_LEVEL_NAMES = {"warning": "warn", "critical": "fatal"}
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
        structlog.processors.TimeStamper(fmt="iso" if as_json else "%H:%M:%S.%f", utc=as_json),
        structlog.processors.StackInfoRenderer(),
    ]
    if as_json:
        shared.append(structlog.processors.format_exc_info)
    renderer: Processor = structlog.processors.JSONRenderer(default=str) if as_json else _console(colours=_colours(out))
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
    """A structured logger: `log.info("what happened", job_id=…)`.

    It says what it says as the process has set up structlog. In a process that has not, such as one that embeds a
    scheduler, it is a logger of the standard library: silent below WARNING by default, and never on stdout.
    """
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name), wrapper_class=cast("type[structlog.stdlib.BoundLogger]", _bound)
    )
    return logger


def _bound(logger: logging.Logger, processors: Iterable[Processor], context: Context) -> BindableLogger:
    """The logger for one use, by what is set up at that moment."""
    if not structlog.is_configured():
        return structlog.stdlib.BoundLogger(logger, processors=_EMBEDDED, context=context)
    config = structlog.get_config()
    bound: BindableLogger = config["wrapper_class"](
        config["logger_factory"](logger.name), processors=processors, context=context
    )
    return bound


def _as_text(logger: WrappedLogger, method: str, event: EventDict) -> tuple[tuple[str], dict[str, Any]]:  # noqa: ARG001 - structlog's protocol
    """What the standard library takes: one text, and what it shows itself."""
    own = {name: event.pop(name) for name in ("exc_info", "stack_info") if name in event}
    what = event.pop("event", "")
    return (" ".join([str(what), *(f"{name}={_shown(value)}" for name, value in event.items())]),), own


_EMBEDDED: Final[list[Processor]] = [structlog.stdlib.filter_by_level, _as_text]


def _console(*, colours: bool) -> Processor:
    """Time, level, what happened, the fields, and last and least who says so."""

    def column(key: str, style: str, show: Callable[[Any], str], prefix: str = "") -> Column:
        on, off = (style, _RESET) if colours else ("", "")
        formatter = KeyValueColumnFormatter(key_style=None, value_style=on + prefix, reset_style=off, value_repr=show)
        return Column(key, formatter)

    def level(key: str, value: object) -> str:  # noqa: ARG001 - structlog's protocol
        on, off = (_LEVEL_STYLES.get(str(value), ""), _RESET) if colours else ("", "")
        return f"{on}{_LEVEL_NAMES.get(str(value), value):<5}{off}"

    dim, cyan = (_DIM, _CYAN) if colours else ("", "")
    others = KeyValueColumnFormatter(
        key_style=cyan, value_style="", reset_style=_RESET if colours else "", value_repr=_shown
    )
    return structlog.dev.ConsoleRenderer(
        # Plain: a traceback that shows local variables shows passwords, too.
        exception_formatter=structlog.dev.plain_traceback,
        columns=[
            Column("", others),
            column("timestamp", dim, lambda text: str(text)[:12]),
            Column("level", level),
            column("event", _BOLD, str),
            column("logger", dim, lambda name: str(name).removeprefix("mainspring."), prefix="· "),
        ],
    )


def _shown(value: object) -> str:
    text = str(value)
    return repr(text) if " " in text and not isinstance(value, list | tuple | dict) else text


def _colours(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return stream.isatty() or bool(os.environ.get("FORCE_COLOR"))
