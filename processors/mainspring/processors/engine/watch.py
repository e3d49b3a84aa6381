"""Whether the topics are still those that this process began with."""

from collections.abc import Sequence

from mainspring.processors.engine.errors import TopicReplacedError, TransactionError
from mainspring.processors.engine.ports import Admin, Pending
from mainspring.telemetry import get_logger

__all__ = ["TopicWatch"]

_log = get_logger(__name__)


class TopicWatch:
    """Asks for the identity of topics from time to time, and waits for no answer.

    A consumer does not notice that its topic was deleted and made again: it goes on from the offset where it stands,
    and skips what the new one has before it.
    """

    def __init__(self, admin: Admin, topics: Sequence[str], every_ms: int) -> None:
        self._admin = admin
        self._topics = tuple(topics)
        self._every_ms = every_ms
        self._ask_at_ms: int | None = None
        self._known: dict[str, str] = {}
        self._answers: dict[str, Pending[str]] = {}

    def look(self, mono_ms: int) -> None:
        """Takes the answers that are there, and asks again when it is time. Raises `TopicReplacedError`."""
        for topic, answer in list(self._answers.items()):
            if answer.done():
                del self._answers[topic]
                self._take(topic, answer)
        if not self._answers and (self._ask_at_ms is None or mono_ms >= self._ask_at_ms):
            self._ask_at_ms = mono_ms + self._every_ms
            self._answers = {topic: self._admin.topic_id(topic) for topic in self._topics}

    def _take(self, topic: str, answer: Pending[str]) -> None:
        try:
            identity = answer.result()
        except TransactionError as error:
            # The broker is away, or the topic is not there: both are told of where they matter.
            _log.debug("a topic could not be looked at", topic=topic, why=str(error))
            return
        known = self._known.setdefault(topic, identity)
        if identity != known:
            raise TopicReplacedError(topic, known, identity)
