"""What can stop a reader of the log.

::

    MainspringError
    └── LogError
        ├── LogTopicError          a topic is absent, or has another layout than the settings say
        ├── LogRangeError          records are no longer in the log
        ├── LogStalledError        the brokers gave nothing for too long
        └── ExportFormatError      a file that is no export, is cut short, or cannot be read back
"""

from mainspring.schemas.errors import MainspringError

__all__ = ["ExportFormatError", "LogError", "LogRangeError", "LogStalledError", "LogTopicError"]


class LogError(MainspringError):
    """Root of what reading the log raises."""


class LogTopicError(LogError):
    """A topic that should be read is not there, or has another layout than the settings say."""


class LogRangeError(LogError):
    """Records that should be read are no longer in the log."""


class LogStalledError(LogError):
    """The brokers gave nothing for too long although more is there."""


class ExportFormatError(LogError):
    """A file is no export of a log, is cut short, or is of a form that cannot be read back."""
