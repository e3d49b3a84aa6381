"""How long to wait before an attempt is repeated: exponential back-off, capped before it is computed, with full jitter.

The jitter is no dice roll but a hash of job, attempt and the partition's seed: whoever replays the decision gets
the same delay, and jobs that failed together still do not come back together.
"""

from mainspring.schemas.job import JobSpec
from mainspring.schemas.spread import spread_over

__all__ = ["backoff_cap_ms", "full_jitter_ms", "retry_delay_ms"]


def backoff_cap_ms(base_ms: int, max_ms: int, attempt: int) -> int:
    """min(max, base·2^(attempt-1)) for `attempt` counted from 1, of any size, without computing 2^attempt."""
    doublings = attempt - 1
    # A number shifted by as many bits as the cap has is above the cap: no need to hold a number of a million bits.
    if base_ms > 0 and doublings >= max_ms.bit_length():
        return max_ms
    return min(max_ms, base_ms << doublings) if base_ms > 0 else 0


def full_jitter_ms(cap_ms: int, job_id: str, attempt: int, seed: int) -> int:
    """A delay between 0 and the cap, both included, spread evenly; the same for the same job, attempt and seed."""
    return spread_over(f"{seed}\x00{attempt}\x00{job_id}", cap_ms + 1)


def retry_delay_ms(spec: JobSpec, attempt: int, seed: int) -> int:
    """Milliseconds until the job's `attempt`-th retry, from 1, by the policy in its specification."""
    cap = backoff_cap_ms(spec.retry_base_delay_ms, spec.retry_max_delay_ms, attempt)
    return full_jitter_ms(cap, spec.job_id, attempt, seed) if spec.retry_jitter else cap
