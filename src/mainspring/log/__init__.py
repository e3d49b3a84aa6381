"""Reading the log: a job's life, the state at a time, an audit of the whole, export and tail."""

from mainspring.log.errors import ExportFormatError, LogError, LogRangeError, LogStalledError, LogTopicError
from mainspring.log.export import ExportFormat, ExportSummary, export
from mainspring.log.exported import ExportedLog
from mainspring.log.history import dead_letters, history, job_logs
from mainspring.log.kafka import KafkaLog
from mainspring.log.records import LogRecord
from mainspring.log.source import LogSource, Place, Raw, Span
from mainspring.log.state import StateAt, job_at, state_at, states_at
from mainspring.log.tail import tail
from mainspring.log.verify import Check, Finding, VerifyProgress, VerifyReport, verify

__all__ = [
    "Check",
    "ExportFormat",
    "ExportFormatError",
    "ExportSummary",
    "ExportedLog",
    "Finding",
    "KafkaLog",
    "LogError",
    "LogRangeError",
    "LogRecord",
    "LogSource",
    "LogStalledError",
    "LogTopicError",
    "Place",
    "Raw",
    "Span",
    "StateAt",
    "VerifyProgress",
    "VerifyReport",
    "dead_letters",
    "export",
    "history",
    "job_at",
    "job_logs",
    "state_at",
    "states_at",
    "tail",
    "verify",
]
