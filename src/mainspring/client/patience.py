"""Asking a broker again while its answer is that it is not ready to answer."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

__all__ = ["ABSENT_S", "is_absent", "patiently"]

T = TypeVar("T")

RETRY_S = 0.05
ABSENT_S = 2.0
"""How long a topic may be unknown: a new one reaches every broker within some hundred milliseconds."""

PASSING: Final = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._NOENT,  # noqa: SLF001 - the public name of a code of the client library
    }
)
"""What is said of a partition while its leader changes; the last by the client library, when it finds none."""

_ABSENT: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})


def is_absent(error: KafkaError) -> bool:
    """Whether the cluster says that there is no such topic or partition."""
    return error.code() in _ABSENT


def patiently(ask: Callable[[], T], patience_s: float) -> T:
    """What `ask` returns; while it raises an error that passes it is asked again, for at most so long.

    A topic that is not there has the same error as one that was just made, and gets `ABSENT_S` at most.
    """
    began_at = time.monotonic()
    while True:
        try:
            return ask()
        except KafkaException as error:
            refusal = error.args[0]
            absent = is_absent(refusal)
            limit_s = min(patience_s, ABSENT_S) if absent else patience_s
            if not (absent or refusal.code() in PASSING) or time.monotonic() - began_at > limit_s:
                raise
            time.sleep(RETRY_S)
