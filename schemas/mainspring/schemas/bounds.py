"""How large and how long anything may be, each with its reason. `limits` has the checks."""

__all__ = [
    "ACTIVE_INSTANCES_MAX",
    "ACTOR_MAX_CHARS",
    "BACKFILLS_MAX",
    "BACKFILL_MAX",
    "BACKFILL_SPAN_MAX_MS",
    "BUFFER_MAX",
    "CATCH_UP_WINDOW_MAX_MS",
    "CONTENT_TYPE_MAX_CHARS",
    "DELAY_MAX_MS",
    "ERROR_MESSAGE_MAX_CHARS",
    "ERROR_TYPE_MAX_CHARS",
    "EVIDENCE_MAX_BYTES",
    "FIRED_RUNS_MAX",
    "ID_MAX_CHARS",
    "INSTANT_MAX_MS",
    "LOG_MAX_BYTES",
    "MESSAGE_MAX_CHARS",
    "NAME_MAX_CHARS",
    "NOTE_MAX_CHARS",
    "PAYLOAD_MAX_BYTES",
    "PREFIX_MAX_CHARS",
    "QUEUE_MAX_CHARS",
    "REASON_MAX_CHARS",
    "RECORD_MAX_BYTES",
    "RESULT_MAX_BYTES",
    "RETRIES_MAX",
    "RETRY_DELAY_MAX_MS",
    "RUNS_MAX",
    "SCHEDULE_ID_MAX_CHARS",
    "SCHEDULE_NOTE_MAX_CHARS",
    "TAGS_MAX",
    "TAG_MAX_CHARS",
    "TENANT_MAX_CHARS",
    "TIMEOUT_MAX_MS",
    "TRACEBACK_MAX_CHARS",
]

_DAY_MS = 86_400_000

ID_MAX_CHARS = 255
"""Ids are record keys, table keys and parts of URLs: long enough for a path or a digest, short enough for a line."""

NAME_MAX_CHARS = 255
"""Names of handlers: a dotted path at most."""

QUEUE_MAX_CHARS = 128
"""A queue is part of a topic name, of which Kafka takes 249 characters: prefix, `work.`, queue and `.critical`."""

PREFIX_MAX_CHARS = 100
"""What then is left for the prefix of the topics, with room to spare."""

TENANT_MAX_CHARS = 255
"""Tenants are keys of weights and limits, as ids are."""

TAGS_MAX = 32
"""Tags are copied into the view, one row each."""

TAG_MAX_CHARS = 128
"""A tag is a label, not a document."""

CONTENT_TYPE_MAX_CHARS = 255
"""RFC 6838 allows 127 characters on each side of the slash."""

ACTOR_MAX_CHARS = 255
"""Who asked: a user name, a principal or an address."""

REASON_MAX_CHARS = 1024
"""Why a user asked; it is copied into the event."""

PAYLOAD_MAX_BYTES = 512 * 1024
"""A payload is carried by three records; half of Kafka's default record size leaves room for all else. Larger data
belongs into an object store, and its address into the payload."""

RESULT_MAX_BYTES = 256 * 1024
"""A result is carried by a report and an event and kept in the view."""

RECORD_MAX_BYTES = 1024 * 1024
"""The largest record of `commands`, Kafka's own default. Internal topics take twice this, so that whatever was accepted
also fits into the records made from it."""

INSTANT_MAX_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, where Python's datetimes end. Epoch milliseconds UTC."""

DELAY_MAX_MS = 3653 * _DAY_MS
"""Ten years; further ahead an instant says better what is meant."""

TIMEOUT_MAX_MS = 366 * _DAY_MS
"""A year; longer than any attempt lives between two deployments."""

RETRIES_MAX = 1_000_000
"""Attempts are numbered in 32 bits; this leaves room and is still no limit to anybody."""

RETRY_DELAY_MAX_MS = 366 * _DAY_MS
"""A year between two attempts."""

ERROR_TYPE_MAX_CHARS = 255
"""Name of an exception class."""

ERROR_MESSAGE_MAX_CHARS = 4096
"""An error goes into the events and the view: its message is cut to this..."""

TRACEBACK_MAX_CHARS = 16_384
"""...and its traceback, in the middle, to this."""

MESSAGE_MAX_CHARS = 1024
"""Text of a refusal: it may quote what the user sent."""

NOTE_MAX_CHARS = 255
"""Progress notes travel with every heartbeat."""

EVIDENCE_MAX_BYTES = 16 * 1024
"""A refused report is kept, but a flood of late results shall not fill the log that is kept for ever."""

LOG_MAX_BYTES = 64 * 1024
"""Captured output of one attempt."""

SCHEDULE_ID_MAX_CHARS = 200
"""The ids of its jobs and the command ids of their submits are made from it, and shall fit into `ID_MAX_CHARS`."""

SCHEDULE_NOTE_MAX_CHARS = 1024
"""What a schedule is for, or why it is paused."""

BUFFER_MAX = 10_000
"""Occurrences that may wait for an instance to end."""

RUNS_MAX = 1_000_000_000
"""A run a second for thirty years."""

CATCH_UP_WINDOW_MAX_MS = 366 * _DAY_MS
"""A year: what is missed for longer is hardly wanted any more."""

BACKFILL_MAX = 100_000
"""Occurrences of one backfill; the range of a larger one is divided by whoever wants it."""

BACKFILL_SPAN_MAX_MS = 3653 * _DAY_MS
"""Ten years: the occurrences of a range are counted day by day before it is accepted, and everybody else waits."""

BACKFILLS_MAX = 16
"""Backfills of a schedule at a time: they are part of its row."""

ACTIVE_INSTANCES_MAX = 100
"""Unfinished instances that a schedule's row lists; more than one there is only with ALLOW_ALL, and triggers."""

FIRED_RUNS_MAX = 256
"""Runs of fired occurrences that a schedule's row remembers, so that no backfill fires one again: a schedule that
leaves nothing out has one. What is forgotten, the jobs' own rows still know for as long as they are kept."""
