"""A real Apache Kafka on this machine, with nothing installed but Python.

`EmbeddedKafka` is a cluster that ends with this process (tests, demo, benchmarks); `mainspring.local.control` starts
and stops one that outlives it.
"""

from mainspring.local.cluster import EmbeddedKafka
from mainspring.local.errors import (
    AlreadyRunningError,
    BrokerStartError,
    KafkaDownloadError,
    LocalExtraMissingError,
    LocalKafkaError,
)

__all__ = [
    "AlreadyRunningError",
    "BrokerStartError",
    "EmbeddedKafka",
    "KafkaDownloadError",
    "LocalExtraMissingError",
    "LocalKafkaError",
]
