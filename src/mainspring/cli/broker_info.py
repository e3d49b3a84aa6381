"""What a broker says of itself before any login: which requests and features it knows.

Kafka has no request for its version. The client library asks for the supported requests but does not hand the answer
on, so this asks once more, with the one request (ApiVersions) that every broker answers without authentication.
"""

import socket
import ssl
import struct
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["BrokerInfo", "ask_broker", "release_of"]

_API_VERSIONS = 18
_FLEXIBLE = 3
_SUPPORTED_TAG, _FINALIZED_TAG = 0, 2
# The first metadata.version of each release; a broker supports all up to its own.
_RELEASES = (
    (7, "3.3"),
    (8, "3.4"),
    (9, "3.5"),
    (12, "3.6"),
    (15, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (22, "4.0"),
    (26, "4.1"),
    (28, "4.2"),
    (30, "4.3"),
)
_LAST_KNOWN = 30
_ANSWER_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInfo:
    """The features that a broker supports (their highest level), and those that the cluster has switched on."""

    supported: dict[str, int] = field(default_factory=dict)
    finalized: dict[str, int] = field(default_factory=dict)


def release_of(info: BrokerInfo) -> str:
    """The Kafka release that the features belong to, as near as they tell."""
    level = info.supported.get("metadata.version")
    if level is None:
        return "before 3.3, or not run by KRaft"
    if level > _LAST_KNOWN:
        return "newer than 4.3"
    known = [name for first, name in _RELEASES if first <= level]
    return known[-1] if known else "3.3 preview"


def ask_broker(host: str, port: int, *, tls: bool, ca: Path | None = None, timeout_s: float = 5.0) -> BrokerInfo:
    """Ask one broker. Raises OSError when it cannot be reached, ValueError when what answers is no broker."""
    with socket.create_connection((host, port), timeout_s) as plain:
        if not tls:
            return _ask(plain)
        context = ssl.create_default_context(cafile=str(ca) if ca else None)
        with context.wrap_socket(plain, server_hostname=host) as secure:
            return _ask(secure)


def _ask(connection: socket.socket) -> BrokerInfo:
    name, version = b"mainspring-doctor", b"1"
    body = bytes([len(name) + 1]) + name + bytes([len(version) + 1]) + version + b"\0"
    request = struct.pack(">hhih", _API_VERSIONS, _FLEXIBLE, 1, len(name)) + name + b"\0" + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 0 < size < _ANSWER_MAX_BYTES:
        raise ValueError("what listens there is no Kafka broker")
    return _parse(_exactly(connection, size))


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ValueError("the connection was closed: is this a Kafka listener, and does it want TLS?")
        data += more
    return data


def _parse(data: bytes) -> BrokerInfo:
    reader = _Reader(data)
    reader.take(4)
    if reader.int16() != 0:
        # A broker too old for this version of the request answers in the oldest one; it has no features either.
        return BrokerInfo()
    for _ in range(reader.varint() - 1):
        reader.take(6)
        reader.tags()
    reader.take(4)
    tags = reader.tags()
    return BrokerInfo(
        supported=_levels(tags.get(_SUPPORTED_TAG), highest_second=True),
        finalized=_levels(tags.get(_FINALIZED_TAG), highest_second=False),
    )


def _levels(data: bytes | None, *, highest_second: bool) -> dict[str, int]:
    """Features with their highest level: supported ones come as (least, highest), finalized ones reversed."""
    levels: dict[str, int] = {}
    if data is None:
        return levels
    reader = _Reader(data)
    for _ in range(reader.varint() - 1):
        name = reader.take(reader.varint() - 1).decode()
        first, second = reader.int16(), reader.int16()
        reader.tags()
        levels[name] = second if highest_second else first
    return levels


class _Reader:
    """Reads Kafka's wire types in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise ValueError("the broker's answer is cut short")
        self._at += size
        return self._data[self._at - size : self._at]

    def int16(self) -> int:
        return int(struct.unpack(">h", self.take(2))[0])

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
                return value
            shift += 7

    def tags(self) -> dict[int, bytes]:
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}
