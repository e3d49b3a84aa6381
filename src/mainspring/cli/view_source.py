"""Opening the view, and whether it is the view of the cluster that the settings name."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from mainspring.cli.connect import admin_client, connection_of
from mainspring.cli.errors import CliError
from mainspring.cli.output import warn

if TYPE_CHECKING:
    from mainspring.processors.projector.view import View
    from mainspring.settings import Settings

__all__ = ["not_of_this_cluster", "open_view"]

_ASK_S = 2.0
_FILE = "sqlite:///"


def open_view(settings: "Settings") -> "View":
    """The reader of the view. Raises `CliError` where there is none, or where it is another cluster's.

    Without a broker that answers nobody can tell: then a warning says when the view last moved.
    """
    from confluent_kafka import KafkaException

    from mainspring.processors.projector import ViewAbsentError
    from mainspring.processors.projector.view import View

    try:
        view = View(settings.view.url.get_secret_value())
    except ViewAbsentError as error:
        raise _absent(settings, error) from error
    try:
        other = not_of_this_cluster(settings, view)
    except KafkaException:
        warn(f"no broker answers at {settings.kafka.bootstrap}: {_stood(view)}")
        return view
    if other is not None:
        view.close()
        raise CliError(
            f"The view at {settings.view.url} is not of the Kafka at {settings.kafka.bootstrap}.",
            why=other,
            hint="Set view.url to the view of this installation, or kafka.bootstrap and topics.prefix to those of the "
            "view (`mainspring config show` tells where each comes from).",
        )
    return view


def not_of_this_cluster(settings: "Settings", view: "View") -> str | None:
    """Why the view is not of the settings' topics; None when it is, or has not said yet. Raises KafkaException."""
    from confluent_kafka import KafkaError, KafkaException, TopicCollection

    source = view.source()
    if source is None:
        return None
    topic = settings.topology().events.name
    if source.topic != topic:
        return f"It is a fold of topic {source.topic}, and the settings name {topic}."
    admin = admin_client(connection_of(settings))
    future = admin.describe_topics(TopicCollection([topic]), request_timeout=_ASK_S)[topic]
    try:
        topic_id = str(future.result(2 * _ASK_S).topic_id)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return f"It is a fold of topic {topic}, which this cluster does not have."
        raise
    except TimeoutError as error:
        raise KafkaException(str(error)) from error
    if topic_id == source.topic_id:
        return None
    return f"It is a fold of a topic {topic} with the id {source.topic_id}; the one there has the id {topic_id}."


def _stood(view: "View") -> str:
    newest_ms = max((position.last_event_at_ms for position in view.position().values()), default=0)
    if not newest_ms:
        return "the view has no events yet"
    at = time.localtime(newest_ms / 1000)
    today = at[:3] == time.localtime()[:3]
    return "what the view shows is of " + time.strftime("%H:%M:%S %Z" if today else "%Y-%m-%d %H:%M:%S %Z", at)


def _absent(settings: "Settings", error: Exception) -> CliError:
    url = str(settings.view.url)
    shown, note = url, ""
    if url.startswith(_FILE) and not url.startswith(_FILE + "/"):
        shown = f"{Path.cwd() / url.removeprefix(_FILE)}"
        note = f" view.url is {url}: relative to this directory."
    return CliError(
        f"There is no view at {shown}.{note}",
        why=str(error),
        hint="`mainspring dev` names the MAINSPRING_CONFIG that leads to its view; `mainspring projector` writes one; "
        "`mainspring log history JOB_ID` reads the log itself and needs none.",
    )
