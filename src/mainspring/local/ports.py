"""Free loopback ports, below the range that the kernel gives to outgoing connections.

A port from the ephemeral range may be taken by any client while a node restarts; one from below it stays ours.
"""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"
# Linux hands out 32768-60999 and macOS 49152-65535 to outgoing connections; below 15000 live the well-known services.
_LOWEST, _HIGHEST = 15_000, 32_000
_TRIES = 200


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> tuple[int, ...]:
    """As many different free loopback ports; raises OSError where too few are free."""
    found: set[int] = set()
    for _ in range(_TRIES * count):
        if len(found) == count:
            break
        port = random.randint(_LOWEST, _HIGHEST)  # noqa: S311 - a port is no secret
        if port not in found and is_free(port):
            found.add(port)
    if len(found) < count:
        raise OSError(f"found {len(found)} of {count} free ports between {_LOWEST} and {_HIGHEST} on {LOOPBACK}")
    return tuple(found)
