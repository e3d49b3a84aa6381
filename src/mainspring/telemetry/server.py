"""A small HTTP server for `/metrics`, `/livez`, `/readyz` and `/startupz`."""

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from mainspring.telemetry.health import Health, Probe
from mainspring.telemetry.metrics import REGISTRY

__all__ = ["TelemetryServer"]

_PROBES = {"/livez": Probe.LIVE, "/readyz": Probe.READY, "/startupz": Probe.STARTUP}


class TelemetryServer:
    """Serves the metrics of `registry` and the checks of `health` from daemon threads.

    Use it as a context manager, or `start` and `stop`. With port 0 the system chooses; `url` tells the address.
    """

    def __init__(
        self, health: Health, *, host: str = "127.0.0.1", port: int = 0, registry: CollectorRegistry = REGISTRY
    ) -> None:
        self._health = health
        self._registry = registry
        self._address = (host, port)
        self._server: ThreadingHTTPServer | None = None
        self._thread: Thread | None = None

    def start(self) -> Self:
        """Listen. Raises OSError when the port is taken."""
        self._server = _Server(self._address, self._health, self._registry)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.name = "telemetry"
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port; safe to repeat."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = self._thread = None

    @property
    def port(self) -> int:
        """The port that is listened on; 0 before `start`."""
        return self._address[1] if self._server is None else int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address, such as `http://127.0.0.1:9464`."""
        host = f"[{self._address[0]}]" if ":" in self._address[0] else self._address[0]
        return f"http://{host}:{self.port}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A slow reader must not keep `stop` waiting.
    block_on_close = False

    def __init__(self, address: tuple[str, int], health: Health, registry: CollectorRegistry) -> None:
        self.health = health
        self.registry = registry
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content_type, encode(self.server.registry))
        elif path in _PROBES:
            report = self.server.health.report(_PROBES[path])
            status = HTTPStatus.OK if report.ok else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "application/json", json.dumps(report.as_json(), indent=2).encode() + b"\n")
        else:
            known = ", ".join(["/metrics", *_PROBES])
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"Not here. There are {known}.\n".encode())

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def log_message(self, *_: object) -> None:
        """Say nothing: a probe every second would bury what matters."""

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
