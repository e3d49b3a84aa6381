"""The client of one command."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.client import Client
    from mainspring.settings import Settings

__all__ = ["open_client"]


def open_client(settings: "Settings") -> "Client":
    """A client, to be used as a context manager. What librdkafka has to say goes to the log, not between the data."""
    from mainspring.client import Client
    from mainspring.telemetry import configure_logging

    configure_logging(style="console", level="error")
    return Client(settings)
