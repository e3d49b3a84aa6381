"""How a command reaches the cluster: quietly, and with a clear word at once when nobody answers."""

import logging
from dataclasses import replace
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
    if settings.log.level == "debug":
        from mainspring.telemetry import configure_logging

        configure_logging(style=settings.log.format, level="debug")
        return settings.connection()
    return replace(settings.connection(), logger=_unheard())


def _unheard() -> logging.Logger:
    logger = logging.Logger("librdkafka", logging.CRITICAL + 1)  # noqa: LOG001 - not of the registry: of this command
    logger.addHandler(logging.NullHandler())
    return logger


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
