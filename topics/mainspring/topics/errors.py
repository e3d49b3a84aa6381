"""What can be wrong with topics and connections.

::

    MainspringError
    ├── TopologyError              no cluster could hold it, or Kafka refused to make it
    │   ├── UnknownQueueError      a queue that the settings do not declare
    │   └── TopicMismatchError     a topic differs in what cannot be changed, or is missing
    └── ProtectedOptionError       a librdkafka option that the guarantees rest on
"""

from mainspring.schemas.errors import MainspringError

__all__ = ["ProtectedOptionError", "TopicMismatchError", "TopologyError", "UnknownQueueError"]


class TopologyError(MainspringError):
    """A topology that no cluster could hold, or that Kafka refused to make."""


class UnknownQueueError(TopologyError):
    """A queue that is not declared in the settings."""

    def __init__(self, queue: str, known: tuple[str, ...]) -> None:
        names = ", ".join(sorted(known))
        super().__init__(
            f"queue {queue!r} is not declared; declared are: {names}. Add it to the settings and apply the topics"
        )
        self.queue = queue


class TopicMismatchError(TopologyError):
    """A topic that exists and differs in what cannot be changed, or does not exist where it must."""


class ProtectedOptionError(MainspringError):
    """A librdkafka option that the guarantees rest on, and that may not be set from outside."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"the Kafka option {option!r} cannot be set: {reason}. Remove it from the settings")
        self.option = option
        self.reason = reason
