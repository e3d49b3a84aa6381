"""Ids that sort by the time they were made: UUIDs of version 7."""

import os
import re
import time

__all__ = ["new_job_id", "time_of_id"]

_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def new_job_id() -> str:
    """A new UUIDv7 in its usual text form."""
    nanoseconds = time.time_ns()
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    when = f"{milliseconds:012x}"
    chance = os.urandom(8).hex()
    # 12 bits of the fraction of the millisecond keep the order of ids made in one process (RFC 9562, 6.2, method 3).
    return f"{when[:8]}-{when[8:]}-7{rest * 4096 // 1_000_000:03x}-{'89ab'[rest & 3]}{chance[1:4]}-{chance[4:]}"


def time_of_id(job_id: str) -> int | None:
    """When the id was made, epoch milliseconds; None for an id of another kind."""
    if _UUID7.fullmatch(job_id) is None:
        return None
    return int(job_id[:8] + job_id[9:13], 16)
