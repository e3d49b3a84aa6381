"""What a client needs to know, and where it comes from."""

import getpass
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.client.outcomes import ResultDecoder, decode_result
from mainspring.jobs.payload import JSON, PayloadCodec
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology

if TYPE_CHECKING:
    from mainspring.settings import Settings

__all__ = ["ClientConfig", "default_actor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """How to reach an installation and who is asking.

    `view_url` is the projector's view (None: there is none). `payloads` writes the arguments of jobs that are given by
    name; `decode_result` makes values of results by their content type. `delivery_s` is how long a command may take to
    be acknowledged by all in-sync replicas before it counts as not delivered.
    """

    connection: Connection
    topology: Topology
    codec: Codec
    actor: str
    view_url: str | None = None
    payloads: PayloadCodec = JSON
    decode_result: ResultDecoder = decode_result
    delivery_s: float = 30.0

    @classmethod
    def of(
        cls, settings: "Settings | None" = None, *, bootstrap: str | None = None, actor: str | None = None
    ) -> "ClientConfig":
        """From settings; else from a bootstrap address and defaults; else from the environment."""
        from mainspring.settings import Settings

        if settings is None:
            settings = Settings.load(flags={"kafka.bootstrap": bootstrap})
        elif bootstrap is not None:
            raise ValueError("settings and bootstrap were both given: put the address into the settings")
        return cls(
            connection=settings.connection(),
            topology=settings.topology(),
            codec=settings.codec(),
            actor=actor or default_actor(),
            view_url=settings.view.url.get_secret_value(),
        )


def default_actor() -> str:
    """`user@host`, as far as the machine tells."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
