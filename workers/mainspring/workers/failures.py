"""Exceptions as data: what a report carries of them, and what the scheduler shall make of it."""

import traceback
from types import TracebackType

from mainspring.jobs.errors import AttemptFailureError, NonRetryableError, RetryLater
from mainspring.schemas.bounds import (
    ERROR_MESSAGE_MAX_CHARS,
    ERROR_TYPE_MAX_CHARS,
    RETRY_DELAY_MAX_MS,
    TRACEBACK_MAX_CHARS,
)
from mainspring.schemas.common import AttemptError
from mainspring.schemas.limits import clip
from mainspring.workers.attempt import Attempt, Outcome, OutcomeKind, StopReason

__all__ = ["describe", "failed", "own_delay_ms", "stopped", "succeeded"]

_OUR_CODE = __name__.rpartition(".")[0]
_STOPPED = {
    StopReason.TIMED_OUT: Outcome(kind=OutcomeKind.TIMED_OUT),
    StopReason.CANCELLED: Outcome(kind=OutcomeKind.CANCELLED),
    StopReason.DRAINING: Outcome(kind=OutcomeKind.RELEASED),
    StopReason.LEASE_AT_RISK: Outcome(kind=OutcomeKind.RELEASED),
}
_NOTHING_RETURNED = Outcome(kind=OutcomeKind.SUCCEEDED)


def succeeded(attempt: Attempt, value: object) -> Outcome:
    """The end of an attempt whose handler returned. A result that cannot be written down fails it."""
    if attempt.stop_reason is StopReason.TIMED_OUT:
        return _STOPPED[StopReason.TIMED_OUT]
    if value is None:
        return _NOTHING_RETURNED
    try:
        return Outcome(kind=OutcomeKind.SUCCEEDED, result=attempt.handler.encode_result(value))
    except Exception as error:  # noqa: BLE001  # a codec of the user's may raise anything
        return failed(attempt, error)


def failed(attempt: Attempt, error: BaseException) -> Outcome:
    """The end of an attempt whose handler raised. What was asked to stop has stopped, whatever it raised on its way."""
    if attempt.stop_reason is not None:
        return _STOPPED[attempt.stop_reason]
    return Outcome(
        kind=OutcomeKind.FAILED,
        error=describe(error),
        retryable=not isinstance(error, NonRetryableError),
        retry_delay_ms=own_delay_ms(error),
    )


def own_delay_ms(error: BaseException) -> int | None:
    """The delay that an exception asks for, cut to the longest there is; None where it asks for none."""
    if not isinstance(error, RetryLater):
        return None
    delay_s = getattr(error, "delay", None)  # a subclass may have its own __init__ and never have set it
    if not isinstance(delay_s, int | float) or not delay_s >= 0:
        return None
    return round(min(delay_s, RETRY_DELAY_MAX_MS / 1000) * 1000)


def stopped(reason: StopReason) -> Outcome:
    """The end of an attempt that did as it was told."""
    return _STOPPED[reason]


def describe(error: BaseException) -> AttemptError:
    """Type, message and traceback as bounded text. Never raises, whatever the exception's own methods do."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except BaseException as broken:  # noqa: BLE001  # an exception's own __str__ may raise anything
        message = f"<its text cannot be made: {type(broken).__name__}>"
    return AttemptError(
        type=clip(name, ERROR_TYPE_MAX_CHARS),
        message=clip(message, ERROR_MESSAGE_MAX_CHARS),
        traceback=_traceback(error),
    )


def _traceback(error: BaseException) -> str | None:
    if (
        isinstance(error, AttemptFailureError)
        and error.__traceback__ is not None
        and _users(error.__traceback__) is None
    ):
        return None  # raised by this package before the handler was called: the message says it all
    try:
        lines = traceback.format_exception(type(error), error, _users(error.__traceback__) or error.__traceback__)
        return clip("".join(lines), TRACEBACK_MAX_CHARS)
    except BaseException:  # noqa: BLE001  # a report without a traceback is better than none
        return None


def _users(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package that called the handler."""
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_OUR_CODE):
        trace = trace.tb_next
    if trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).startswith("mainspring.jobs."):
        return None
    return trace
