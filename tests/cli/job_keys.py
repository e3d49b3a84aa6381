"""What the JSON of a job has: in a list, and by itself."""

__all__ = ["DETAIL_KEYS", "JOB_KEYS"]

JOB_KEYS = {
    *("job_id", "name", "status", "queue", "priority", "tenant", "tags", "attempt", "retries", "max_retries", "lost"),
    *("max_lost", "cancelling", "submitted_at", "due_at", "started_at", "finished_at", "worker_id", "ended_code"),
    *("error", "schedule_id", "retry_of", "revision", "seq", "partition", "last_event"),
}

DETAIL_KEYS = JOB_KEYS | {
    *("submitted_by", "submit_reason", "submit_command_id", "timeout_ms", "deadline", "start_deadline", "payload"),
    *("payload_bytes", "content_type", "result", "result_bytes", "result_content_type", "ended_by", "ended_reason"),
    *("cancel", "attempts", "events"),
}
