"""Asking a broker again while its answer is that it is not ready to answer."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

__all__ = ["patiently"]

T = TypeVar("T")

RETRY_S = 0.05

PASSING: Final = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What is said of a partition while its leader changes, or its topic has just been made."""


def patiently(ask: Callable[[], T], patience_s: float) -> T:
    """What `ask` returns; while it raises an error that passes it is asked again, for at most so long."""
    give_up_at = time.monotonic() + patience_s
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in PASSING or time.monotonic() > give_up_at:
                raise
            time.sleep(RETRY_S)
