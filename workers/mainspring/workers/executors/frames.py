"""What a worker and its process children say to each other: length-prefixed frames over a socket pair.

A frame is a kind (one byte), the length of a JSON head and of a body (4 bytes each), the head, the body. Everything is
text and encoded bytes: no object of a user is ever pickled, so none can fail to be unpickled.
"""

import json
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

__all__ = ["MAIN_ALIAS", "Frame", "FrameBuffer", "FrameKind", "pack"]

MAIN_ALIAS = "__mainspring_main__"
"""Name under which a child imports the script that its parent was started with."""
_PREFIX = struct.Struct(">BII")


class FrameKind(IntEnum):
    """Who says what."""

    INIT = 0
    """Parent: search path and log level of the process."""
    RUN = 1
    """Parent: an attempt; the body is its payload."""
    CANCEL = 2
    """Parent: the attempt should stop."""
    EXIT = 3
    """Parent: run the stop hooks and end."""
    PROGRESS = 4
    """Child: how far it is."""
    SUCCEEDED = 5
    """Child: it returned; the body is the encoded result, `none` in the head tells that there is none."""
    FAILED = 6
    """Child: it raised; the head is the error."""


Frame = tuple[FrameKind, dict[str, Any], bytes]


def pack(kind: FrameKind, head: dict[str, Any] | None = None, body: bytes = b"") -> bytes:
    """The bytes of a frame."""
    text = json.dumps(head or {}).encode()
    return _PREFIX.pack(kind, len(text), len(body)) + text + body


class FrameBuffer:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Takes bytes and yields the frames that are complete."""
        self._data += data
        while len(self._data) >= _PREFIX.size:
            kind, head_size, body_size = _PREFIX.unpack_from(self._data)
            end = _PREFIX.size + head_size + body_size
            if len(self._data) < end:
                return
            middle = _PREFIX.size + head_size
            frame = (
                FrameKind(kind),
                json.loads(self._data[_PREFIX.size : middle]),
                bytes(self._data[middle:end]),
            )
            del self._data[:end]
            yield frame
