"""How long a group waits for a silent member: as short as the brokers allow, and no shorter than is wise."""

from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from mainspring.telemetry import get_logger

__all__ = ["shortest_session_ms"]

_log = get_logger(__name__)

_WISE_MS = 3_000
"""Shorter, and a pause of a busy machine takes the partitions away from a process that lives."""
_STOCK_MS = 6_000
"""What brokers allow at least when nobody has set them."""
_PATIENCE_S = 3.0


def shortest_session_ms(admin_config: dict[str, Any]) -> int:
    """The session time-out to join with, in milliseconds: the brokers' `group.min.session.timeout.ms`, at least 3 s.

    6 s where the brokers do not tell, for every broker with stock settings allows that.
    """
    admin = AdminClient(admin_config)
    try:
        broker = next(iter(admin.list_topics(timeout=_PATIENCE_S).brokers))
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        settings = admin.describe_configs([resource], request_timeout=_PATIENCE_S)[resource].result()
        allowed_ms = int(settings["group.min.session.timeout.ms"].value)
    except (KafkaException, KeyError, StopIteration) as error:
        _log.info("the brokers do not tell the shortest session they allow", why=str(error), session_ms=_STOCK_MS)
        return _STOCK_MS
    return max(allowed_ms, _WISE_MS)
