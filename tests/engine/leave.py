"""Makes the broker drop members of a group without telling them, as it does after a pause of the whole machine."""

import socket
import struct
from typing import Any

from confluent_kafka.admin import AdminClient

LEAVE_GROUP = 13


def evict(bootstrap: str, group: str) -> None:
    """Sends LeaveGroup on behalf of every member."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    description: Any = admin.describe_consumer_groups([group])[group].result(10)
    for member in description.members:
        _leave(bootstrap, group, member.member_id)


def _leave(bootstrap: str, group: str, member: str) -> None:
    host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
    header = struct.pack(">hhi", LEAVE_GROUP, 0, 1) + _text("test")
    request = header + _text(group) + _text(member)
    with socket.create_connection((host, int(port)), 10) as link:
        link.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", _exactly(link, 4))
        (code,) = struct.unpack(">h", _exactly(link, length)[-2:])
    assert code == 0, f"LeaveGroup was answered with error {code}"


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _exactly(link: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        part = link.recv(count - len(read))
        assert part, "the broker closed the connection"
        read += part
    return read
