"""What an export says about itself: whose log it is, and which offsets are in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mainspring.log.errors import ExportFormatError
from mainspring.log.source import Span
from mainspring.topics import Topology

__all__ = ["FORMAT_VERSION", "Manifest"]

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The head of an export. `spans` is by topic name and partition."""

    prefix: str
    partitions: int
    exported_at_ms: int
    spans: Mapping[tuple[str, int], Span]

    @property
    def topology(self) -> Topology:
        """The topics of the installation; of its queues an export knows nothing."""
        return Topology(prefix=self.prefix, partitions=self.partitions)

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "mainspring_log": FORMAT_VERSION,
            "prefix": self.prefix,
            "partitions": self.partitions,
            "exported_at_ms": self.exported_at_ms,
            "spans": [
                [topic, partition, span.start, span.end] for (topic, partition), span in sorted(self.spans.items())
            ],
        }

    @classmethod
    def parse(cls, text: str | bytes) -> "Manifest":
        """The manifest, from its JSON. Raises ExportFormatError."""
        try:
            read = json.loads(text)
            version = read["mainspring_log"]
            if version != FORMAT_VERSION:
                raise ExportFormatError(f"the export has format {version} and this version reads {FORMAT_VERSION}")
            return cls(
                prefix=read["prefix"],
                partitions=read["partitions"],
                exported_at_ms=read["exported_at_ms"],
                spans={
                    (topic, partition): Span(start=start, end=end) for topic, partition, start, end in read["spans"]
                },
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ExportFormatError("the file does not begin with the manifest of an exported log") from error
