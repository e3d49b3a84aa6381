"""SASL and ACLs for the embedded Kafka: a client's security settings can be tried without a cluster of one's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

ClientOptions = dict[str, str | int | float | bool]
"""What a client of confluent-kafka is made with."""

ADMIN = "admin"
_ADMIN_PASSWORD = "admin-secret"  # noqa: S105 - a throw-away broker on loopback
_PLAIN_WORD = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Sasl:
    """The users of a secured cluster, by name with their passwords; `admin` is added and may do everything.

    Clients log in with PLAIN or SCRAM-SHA-512. Everyone but the admin may do only what an ACL allows.
    """

    users: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for word in (*self.users.keys(), *self.users.values()):
            if not _PLAIN_WORD.fullmatch(word):
                raise ValueError(f"{word!r} cannot be a user or password of the embedded Kafka: letters, digits, . _ -")

    @property
    def passwords(self) -> dict[str, str]:
        """Every user's password, the admin's included."""
        return {ADMIN: _ADMIN_PASSWORD, **self.users}

    def client_options(self, user: str = ADMIN, mechanism: str = "SCRAM-SHA-512") -> ClientOptions:
        """The librdkafka options with which this user logs in; raises KeyError for an unknown user."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": self.passwords[user],
        }

    def broker_properties(self) -> dict[str, str]:
        """The lines of `server.properties` that secure both listeners and turn the authorizer on."""
        # PLAIN carries the brokers' own traffic: SCRAM's credentials are in the log, which needs a controller first.
        jaas = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{ADMIN}" password="{self.passwords[ADMIN]}" '
            + " ".join(f'user_{user}="{password}"' for user, password in self.passwords.items())
            + ";"
        )
        return {
            "listener.name.client.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": jaas,
            "listener.name.controller.plain.sasl.jaas.config": jaas,
            "listener.name.client.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": f"User:{ADMIN}",
        }

    def format_arguments(self) -> list[str]:
        """The arguments of Kafka's storage tool that write the SCRAM credentials into a new cluster."""
        arguments = []
        for user, password in self.passwords.items():
            arguments += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
        return arguments
