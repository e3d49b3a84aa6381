"""How a command reaches the cluster: quietly, and with a clear word at once when nobody answers."""

from typing import TYPE_CHECKING, Any

from mainspring.cli.errors import CliError

if TYPE_CHECKING:
    from mainspring.client import Client
    from mainspring.settings import Settings
    from mainspring.topics import Connection

__all__ = ["TIMEOUT_S", "admin_client", "connection_of", "open_client", "reach"]

TIMEOUT_S = 5.0
"""How long a command waits for an answer that a healthy cluster gives in milliseconds."""


def connection_of(settings: "Settings") -> "Connection":
    """The connection of the settings, with librdkafka's own lines kept from the terminal unless `log.level` is debug.

    What it has to say reaches the user as an error of the command, not as lines between the data.
    """
    from mainspring.topics import Connection

    class Quiet(Connection):
        __slots__ = ()

        def _merge(self, defaults: dict[str, Any], own: dict[str, Any], foreign: frozenset[str]) -> dict[str, Any]:
            return super()._merge(defaults | {"log_level": 0}, own, foreign)

    given = settings.connection()
    return given if settings.log.level == "debug" else Quiet(given.bootstrap, given.options)


def reach(settings: "Settings") -> "Connection":
    """A connection to a cluster that answers; raises a `CliError` that says what to do when none does."""
    from confluent_kafka import KafkaException

    connection = connection_of(settings)
    try:
        admin_client(connection).list_topics(settings.topology().commands.name, timeout=TIMEOUT_S)
    except KafkaException as error:
        raise CliError(
            f"No Kafka answers at {connection.bootstrap}.",
            why=f"{error.args[0].str()}. The address comes from: {settings.origin(('kafka', 'bootstrap'))}.",
            hint="Is the broker up, and do kafka.bootstrap and the security settings fit it? A broker of your own: "
            "`mainspring local kafka start`, or everything at once: `mainspring dev`.",
        ) from error
    return connection


def admin_client(connection: "Connection") -> Any:
    """An admin client; keep it until its futures are done, for they end with it."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(connection.admin_config())


def open_client(settings: "Settings") -> "Client":
    """A client, to be used as a context manager."""
    from mainspring.client import Client, ClientConfig
    from mainspring.client.config import default_actor

    return Client(
        config=ClientConfig(
            connection=reach(settings),
            topology=settings.topology(),
            codec=settings.codec(),
            actor=default_actor(),
            view_url=settings.view.url.get_secret_value(),
        )
    )
