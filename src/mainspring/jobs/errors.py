"""Everything that can go wrong with a job, as types.

MainspringError                      root of all of them (mainspring.schemas.errors)
├── JobDefinitionError               a job or handler is declared wrongly; raised where it is declared
│   ├── DuplicateJobNameError        two handlers under one name
│   ├── HandlerSignatureError        parameters that no payload can fill
│   └── UnknownOptionError           a term that no job has, such as a misspelt one
├── InvalidJobError                  a job that cannot be submitted (code, field)
├── NoCurrentJobError                current_context() outside of a job
├── StartHookError                   a start hook of an App raised
└── AttemptFailureError              raised by a handler, or instead of its result
    ├── NonRetryableError            never tried again
    │   ├── UnknownHandlerError      the worker has no handler of that name
    │   ├── PayloadMismatchError     the payload does not fit the handler (fields)
    │   ├── ResultNotEncodableError  the result cannot be written down
    │   └── ResultTooLargeError      the result is larger than the limit
    ├── RetryLater                   tried again after a delay of its own
    └── ProcessDiedError             the process that ran the attempt died
"""

from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches

from mainspring.schemas.codes import RejectCode
from mainspring.schemas.errors import MainspringError

__all__ = [
    "AttemptFailureError",
    "DuplicateJobNameError",
    "HandlerSignatureError",
    "InvalidJobError",
    "JobDefinitionError",
    "NoCurrentJobError",
    "NonRetryableError",
    "PayloadMismatchError",
    "ProcessDiedError",
    "ResultNotEncodableError",
    "ResultTooLargeError",
    "RetryLater",
    "StartHookError",
    "UnknownHandlerError",
    "UnknownOptionError",
]


class JobDefinitionError(MainspringError, TypeError):
    """A job or a handler is declared in a way that cannot work."""


class StartHookError(MainspringError):
    """A start hook of an App raised; `told` is what and where, in the words of a traceback."""

    def __init__(self, hook: str, app: str, told: str) -> None:
        super().__init__(f"start hook {hook} of app {app!r} raised, so the worker does not start:\n{told}")


class DuplicateJobNameError(JobDefinitionError):
    """Two handlers were registered under one name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"job name {name!r} is registered twice; give one of them another `name=`")
        self.name = name


class HandlerSignatureError(JobDefinitionError):
    """A handler has a parameter that no payload can fill."""


class UnknownOptionError(JobDefinitionError):
    """A term that no job has. `option` is what was given, `known` what there is."""

    def __init__(self, option: str, known: tuple[str, ...]) -> None:
        close = get_close_matches(option, known, n=1)
        meant = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}."
        super().__init__(f"a job has no option {option!r}; {meant}")
        self.option = option
        self.known = known


class InvalidJobError(MainspringError, ValueError):
    """A job cannot be submitted as it is; nothing was sent.

    `code` is what the scheduler would refuse it with, `field` the field that is wrong, `message` a sentence about it.
    """

    def __init__(self, code: RejectCode, field: str, message: str) -> None:
        super().__init__(f"{message} [{code}]. Nothing was sent; correct the job and submit it again.")
        self.code = code
        self.field = field
        self.message = message


class NoCurrentJobError(MainspringError, LookupError):
    """current_context() was called where no job runs."""


class AttemptFailureError(MainspringError):
    """Why an attempt failed, where Mainspring or the handler says more than an exception of any type."""


class NonRetryableError(AttemptFailureError):
    """Raise it (or a subclass) in a handler whose failure no retry can mend."""


class UnknownHandlerError(NonRetryableError):
    """No handler of that name is registered here."""


class PayloadMismatchError(NonRetryableError):
    """The payload does not fit the handler's signature. `fields` maps each wrong field to what is wrong with it."""

    def __init__(self, name: str, fields: Mapping[str, str]) -> None:
        listed = "; ".join(f"{field or 'payload'}: {problem}" for field, problem in fields.items())
        super().__init__(f"the payload does not fit job {name!r}: {listed}")
        self.name = name
        self.fields = dict(fields)


class ResultNotEncodableError(NonRetryableError):
    """The handler returned something that the payload codec cannot write down."""


class ResultTooLargeError(NonRetryableError):
    """The handler returned more bytes than a result may have."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the encoded result has {size} bytes, more than the {limit} allowed; "
            "store it elsewhere and return its address"
        )
        self.size = size
        self.limit = limit


class RetryLater(AttemptFailureError):  # noqa: N818  # an instruction that reads as one: `raise RetryLater(30)`
    """Fails the attempt and says itself after how long the next one may run; the retry counts as any other.

    Args:
        delay: seconds, or a timedelta; not negative.
        message: kept as the attempt's error.
    """

    def __init__(self, delay: float | timedelta, message: str = "the handler asked to be tried again later") -> None:
        super().__init__(message)
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else float(delay)
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"delay must be finite and not negative, not {delay!r}")
        self.delay = seconds


class ProcessDiedError(AttemptFailureError):
    """The process that ran the attempt died before it could tell the outcome."""
