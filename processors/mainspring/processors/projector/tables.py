"""The tables of the view. Times are epoch milliseconds UTC; enums are names, priorities ranks (3: CRITICAL)."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, SmallInteger, String, Table, Text

__all__ = [
    "SCHEMA_VERSION",
    "attempts",
    "counters",
    "events",
    "job_specs",
    "job_tags",
    "jobs",
    "meta",
    "metadata",
    "occurrences",
    "positions",
    "rejections",
    "schedule_changes",
    "schedules",
    "unreadable",
]

SCHEMA_VERSION = 4
"""Raised by any change of a table; a view of another version is rebuilt from the log, never migrated."""

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("partition", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("status", String(16), nullable=False),
    Column("name", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("priority", SmallInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("schedule_id", Text),
    Column("retry_of", Text),
    Column("submit_command_id", Text, nullable=False),
    Column("reschedule_command_id", Text),
    Column("submitted_by", Text, nullable=False),
    Column("submit_reason", Text, nullable=False),
    Column("submitted_at_ms", BigInteger, nullable=False),
    Column("due_at_ms", BigInteger, nullable=False),
    Column("delay_ms", BigInteger),
    Column("deadline_ms", BigInteger),
    Column("start_deadline_ms", BigInteger),
    Column("timeout_ms", BigInteger),
    Column("max_retries", Integer, nullable=False),
    Column("max_lost", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("worker_id", Text),
    Column("incarnation", Text),
    Column("started_at_ms", BigInteger),
    Column("finished_at_ms", BigInteger),
    Column("cancel_command_id", Text),
    Column("cancel_actor", Text),
    Column("cancel_reason", Text),
    Column("cancel_requested_at_ms", BigInteger),
    Column("ended_code", Text),
    Column("ended_by", Text),
    Column("ended_reason", Text),
    Column("error_type", Text),
    Column("error_message", Text),
    Column("result_bytes", Integer),
    Column("result_content_type", Text),
    Column("result", LargeBinary),
    Column("last_event_type", String(32), nullable=False),
    Column("last_event_offset", BigInteger, nullable=False),
    Column("last_event_at_ms", BigInteger, nullable=False),
)
Index("jobs_by_submitted", jobs.c.submitted_at_ms, jobs.c.job_id)
Index("jobs_by_status", jobs.c.status, jobs.c.submitted_at_ms, jobs.c.job_id)
Index("jobs_by_queue", jobs.c.queue, jobs.c.submitted_at_ms, jobs.c.job_id)
Index("jobs_by_name", jobs.c.name, jobs.c.submitted_at_ms, jobs.c.job_id)
Index("jobs_by_due", jobs.c.due_at_ms, jobs.c.job_id)
# What most jobs lack costs them nothing.
Index(
    "jobs_by_tenant",
    jobs.c.tenant,
    jobs.c.submitted_at_ms,
    jobs.c.job_id,
    sqlite_where=jobs.c.tenant != "",
    postgresql_where=jobs.c.tenant != "",
)
Index(
    "jobs_by_schedule",
    jobs.c.schedule_id,
    jobs.c.submitted_at_ms,
    sqlite_where=jobs.c.schedule_id.is_not(None),
    postgresql_where=jobs.c.schedule_id.is_not(None),
)
Index(
    "jobs_by_finished",
    jobs.c.finished_at_ms,
    jobs.c.job_id,
    sqlite_where=jobs.c.finished_at_ms.is_not(None),
    postgresql_where=jobs.c.finished_at_ms.is_not(None),
)

job_specs = Table(
    "job_specs",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("content_type", Text, nullable=False),
    Column("payload_bytes", Integer, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("spec", Text, nullable=False),
    comment="What was submitted, written once; not in `jobs`, where each change of state would rewrite the payload.",
)

job_tags = Table(
    "job_tags",
    metadata,
    Column("tag", Text, primary_key=True),
    Column("job_id", Text, primary_key=True),
)
Index("job_tags_by_job", job_tags.c.job_id)

events = Table(
    "events",
    metadata,
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("job_id", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("type", String(32), nullable=False),
    Column("decided_at_ms", BigInteger, nullable=False),
    Column("cause_source", String(16), nullable=False),
    Column("cause_partition", Integer, nullable=False),
    Column("cause_offset", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    sqlite_with_rowid=False,
)
Index("events_by_job", events.c.job_id, events.c.offset)

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("worker_id", Text, nullable=False),
    Column("incarnation", Text, nullable=False),
    Column("due_at_ms", BigInteger, nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    Column("outcome", String(16)),
    Column("retry_delay_ms", BigInteger),
    Column("error_type", Text),
    Column("error_message", Text),
    Column("error_traceback", Text),
    sqlite_with_rowid=False,
)

rejections = Table(
    "rejections",
    metadata,
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("job_id", Text, nullable=False),
    Column("command_id", Text, nullable=False),
    Column("command", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("status", Text),
    Column("decided_at_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
Index("rejections_by_time", rejections.c.decided_at_ms)
Index("rejections_by_job", rejections.c.job_id)

schedules = Table(
    "schedules",
    metadata,
    Column("schedule_id", Text, primary_key=True),
    Column("partition", Integer, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("incarnation", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("job_name", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("timing", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("create_command_id", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Column("cursor_ms", BigInteger, nullable=False),
    Column("busy_until_ms", BigInteger, nullable=False),
    Column("triggered_ms", BigInteger, nullable=False),
    Column("next_nominal_ms", BigInteger),
    Column("next_fire_ms", BigInteger),
    Column("tzdata", Text, nullable=False),
    Column("runs", BigInteger, nullable=False),
    Column("fired", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("running", Integer, nullable=False),
    Column("rest", Text, nullable=False),
    Column("last_nominal_ms", BigInteger),
    Column("last_job_id", Text),
    Column("last_outcome", Text),
    Column("pause_code", Text),
    Column("paused_by", Text),
    Column("pause_note", Text, nullable=False),
    Column("last_event_type", String(32), nullable=False),
    Column("last_event_offset", BigInteger, nullable=False),
    Column("last_event_at_ms", BigInteger, nullable=False),
    comment="Schedules that exist. `next_…` is no fold: it follows from definition, cursor and time zone data.",
)
Index(
    "schedules_by_next",
    schedules.c.next_fire_ms,
    schedules.c.schedule_id,
    sqlite_where=schedules.c.next_fire_ms.is_not(None),
    postgresql_where=schedules.c.next_fire_ms.is_not(None),
)
Index("schedules_by_created", schedules.c.created_at_ms, schedules.c.schedule_id)

occurrences = Table(
    "occurrences",
    metadata,
    Column("schedule_id", Text, primary_key=True),
    Column("incarnation", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("first_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("decided_at_ms", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("tzdata", Text, nullable=False),
    Column("fire_at_ms", BigInteger),
    Column("origin", Text),
    Column("job_id", Text),
    Column("command_id", Text),
    Column("actor", Text),
    Column("ended", Text),
    Column("ended_detail", Text),
    Column("ended_at_ms", BigInteger),
    Column("settled_at_ms", BigInteger),
    sqlite_with_rowid=False,
    comment="The ledger: one fired occurrence, or a run of neighbours that were skipped for one reason.",
)
Index("occurrences_by_time", occurrences.c.schedule_id, occurrences.c.last_ms)
Index(
    "occurrences_by_settled",
    occurrences.c.settled_at_ms,
    sqlite_where=occurrences.c.settled_at_ms.is_not(None),
    postgresql_where=occurrences.c.settled_at_ms.is_not(None),
)

schedule_changes = Table(
    "schedule_changes",
    metadata,
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("schedule_id", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("type", String(32), nullable=False),
    Column("decided_at_ms", BigInteger, nullable=False),
    Column("cause_source", String(16), nullable=False),
    Column("cause_partition", Integer, nullable=False),
    Column("cause_offset", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    sqlite_with_rowid=False,
    comment="Events of schedules that are not in the ledger: what was asked for, and what became of it.",
)
Index("schedule_changes_by_schedule", schedule_changes.c.schedule_id, schedule_changes.c.offset)
Index("schedule_changes_by_time", schedule_changes.c.decided_at_ms)

unreadable = Table(
    "unreadable",
    metadata,
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, primary_key=True, autoincrement=False),
    Column("reason", String(32), nullable=False),
    Column("detail", Text, nullable=False),
    Column("key", LargeBinary),
    sqlite_with_rowid=False,
    comment="Events that could not be read or applied; the view goes on without them and says so.",
)

counters = Table(
    "counters",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("status", String(16), primary_key=True),
    Column("jobs", BigInteger, nullable=False),
    comment="Jobs by queue and status, kept in step with `jobs`, so that counting a large view costs nothing.",
)

positions = Table(
    "positions",
    metadata,
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("topic", Text, nullable=False),
    Column("topic_id", Text, nullable=False),
    Column("next_offset", BigInteger, nullable=False),
    Column("last_event_offset", BigInteger, nullable=False),
    Column("last_event_id", Text, nullable=False),
    Column("last_event_at_ms", BigInteger, nullable=False),
    comment="How far each partition is folded; written in the transaction that folds it.",
)

meta = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)
