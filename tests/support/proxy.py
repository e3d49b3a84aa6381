"""A TCP proxy in front of a broker that understands just enough Kafka to hold back one request and let it go later.

A network may do that: it keeps a request of a connection that its client has given up, and delivers it while the
client is already in its next transaction.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

END_TXN = 26

Mode = Literal["silent", "drop"]

_ANSWERED_S = 30.0


@dataclass(slots=True)
class _Held:
    writer: asyncio.StreamWriter
    frame: bytes
    answer: asyncio.Future[bytes]


class KafkaProxy:
    """Forwards everything between clients of `bootstrap` and the broker at `upstream`, both `host:port` on loopback."""

    def __init__(self, upstream: str) -> None:
        host, port = upstream.rsplit(":", 1)
        self._host, self._port = host, int(port)
        self.bootstrap = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._armed: tuple[int, Mode] | None = None
        self._held: _Held | None = None
        self.has_held = threading.Event()
        self._own_port = 0

    def hold_next(self, api_key: int, mode: Mode) -> None:
        """Holds the next such request back: its client hears nothing (`silent`), or loses the connection (`drop`)."""
        self.has_held.clear()
        self._armed = (api_key, mode)

    def release(self) -> int:
        """Delivers the request that was held back; the error code of the broker's answer, 0 where it did as asked."""

        async def deliver() -> bytes:
            held = self._held
            assert held is not None
            held.writer.write(held.frame)
            await held.writer.drain()
            answer = await held.answer
            self._held = None
            return answer

        assert self._loop is not None
        answer = asyncio.run_coroutine_threadsafe(deliver(), self._loop).result(_ANSWERED_S)
        # Of what can be held, EndTxn: size, correlation id, throttle time, error code.
        return int(struct.unpack(">iiih", answer[:14])[3])

    def run(self, started: threading.Event) -> None:
        """Serves until `stop`, in a thread of its own."""
        asyncio.run(self._main(started))

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)

    async def _main(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            self._own_port = server.sockets[0].getsockname()[1]
            self.bootstrap = f"127.0.0.1:{self._own_port}"
            started.set()
            await self._stop.wait()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.sleep(0.05)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, sink = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, sink]
        back = asyncio.create_task(self._answers(upstream, sink, writer))
        self._tasks.add(back)
        back.add_done_callback(self._tasks.discard)
        is_held = False
        try:
            while True:
                frame = await _frame(reader)
                (api_key,) = struct.unpack(">h", frame[4:6])
                if self._armed is None or self._armed[0] != api_key:
                    sink.write(frame)
                    await sink.drain()
                    continue
                mode = self._armed[1]
                self._armed = None
                self._held = _Held(sink, frame, asyncio.get_running_loop().create_future())
                is_held = True
                self.has_held.set()
                if mode == "drop":
                    writer.transport.abort()
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            # The connection that holds the request outlives its client.
            if not is_held:
                sink.close()

    async def _answers(
        self, upstream: asyncio.StreamReader, sink: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        """Answers name the broker's address: clients must come back here."""
        theirs = self._host.encode() + struct.pack(">i", self._port)
        ours = b"127.0.0.1" + struct.pack(">i", self._own_port)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                answer = await _frame(upstream)
                held = self._held
                if held is not None and held.writer is sink and answer[4:8] == held.frame[8:12]:
                    held.answer.set_result(answer)  # its client has given it up
                elif not writer.is_closing():
                    writer.write(answer.replace(theirs, ours))
                    with suppress(ConnectionError):
                        await writer.drain()
        writer.close()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(4)
    return head + await reader.readexactly(struct.unpack(">i", head)[0])


@contextmanager
def kafka_proxy(upstream: str) -> Iterator[KafkaProxy]:
    """A running proxy in front of a broker on 127.0.0.1."""
    proxy = KafkaProxy(upstream)
    started = threading.Event()
    thread = threading.Thread(target=proxy.run, args=(started,), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join(10)
