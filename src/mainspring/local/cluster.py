"""`EmbeddedKafka`: a real Apache Kafka, of one or several nodes, in processes of its own on loopback."""

from __future__ import annotations

import base64
import json
import signal
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from mainspring.local.errors import BrokerStartError
from mainspring.local.layout import ClusterLayout, NodePorts
from mainspring.local.node import Node, remaining
from mainspring.local.ports import free_ports
from mainspring.local.readiness import wait_until_ready
from mainspring.local.runtime import Notify, Runtime, silent
from mainspring.local.scratch import Scratch
from mainspring.local.security import ADMIN, ClientOptions, Sasl
from mainspring.local.training import prepare_trained

READY_TIMEOUT_S = 90.0
_STOP_TIMEOUT_S = 15.0
_IDENTITY = "cluster.json"


class EmbeddedKafka:
    """A Kafka cluster that belongs to this process and ends with it.

        with EmbeddedKafka() as kafka:
            client = Client(bootstrap=kafka.bootstrap)

    Nodes are numbered from 1. A cluster without a `data_dir` keeps its data in a temporary directory, which `stop`
    removes; with one, the next start finds the data and the identity of the cluster again.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        data_dir: Path | None = None,
        port: int | None = None,
        sasl: bool = False,
        users: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        heap: str = "512m",
        outlives_parent: bool = False,
        runtime: Runtime | None = None,
        notify: Notify = silent,
    ) -> None:
        """Describe a cluster; nothing is started and nothing written yet.

        `port` fixes the client port of node 1 (default: any free one). `sasl` puts a login and ACLs in front of it, for
        `users` (name to password) and an admin. `settings` are broker settings that win over ours. `heap` is a node's
        Java heap, as `-Xmx` takes it. `outlives_parent` leaves the nodes running when this process ends; it needs a
        `data_dir`. `notify` hears of long steps, such as the first download. Raises ValueError for what cannot be.
        """
        if nodes < 1:
            raise ValueError(f"a cluster needs at least one node, not {nodes}")
        if outlives_parent and data_dir is None:
            raise ValueError("a cluster that outlives this process needs a data_dir: a temporary one goes with it")
        self._count = nodes
        self._given_dir = data_dir
        self._port = port
        self._sasl = Sasl(dict(users or {})) if sasl or users else None
        self._settings = dict(settings or {})
        self._heap = heap
        self._outlives_parent = outlives_parent
        self._runtime = runtime
        self._notify = notify
        self._scratch: Scratch | None = None
        self._nodes: dict[int, Node] = {}

    @property
    def bootstrap(self) -> str:
        """The addresses for `bootstrap.servers`; raises BrokerStartError before the first start."""
        return self._any().layout.bootstrap

    @property
    def data_dir(self) -> Path:
        """The directory with each node's data, settings and log; raises BrokerStartError before the first start."""
        return self._any().home.parent

    @property
    def pids(self) -> dict[int, int]:
        """The process ids of the nodes that run, by node number."""
        return {number: node.pid for number, node in self._nodes.items() if node.running}

    def pid(self, node: int = 1) -> int:
        """The process id of a node; raises BrokerStartError where it is not running."""
        return self._node(node).pid

    def log_file(self, node: int = 1) -> Path:
        """Where a node logs to."""
        return self._node(node).log_file

    def client_options(self, user: str = ADMIN) -> ClientOptions:
        """The librdkafka options that reach this cluster as `user`: the bootstrap, and the login where it has one."""
        login: ClientOptions = self._sasl.client_options(user) if self._sasl else {}
        return {"bootstrap.servers": self.bootstrap, **login}

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Start every node and return once each serves clients; does nothing where they all run.

        Raises BrokerStartError with the tail of the log where a node does not come up; then nothing is left running.
        """
        try:
            if not self._nodes:
                self._lay_out()
            self._launch([node for node in self._nodes.values() if not node.running], timeout_s)
        except BaseException:
            self.stop()
            raise

    def _lay_out(self) -> None:
        runtime = self._runtime or prepare_trained(notify=self._notify)
        directory = self._directory()
        layout = self._layout(directory)
        self._nodes = {
            number: Node(runtime, layout, number, directory / f"node-{number}", self._heap)
            for number in layout.node_ids
        }

    def _directory(self) -> Path:
        if self._given_dir is None:
            self._scratch = Scratch()
            return self._scratch.path
        self._given_dir.mkdir(parents=True, exist_ok=True)
        return self._given_dir

    def _layout(self, directory: Path) -> ClusterLayout:
        ports = free_ports(2 * self._count)
        pairs = [NodePorts(broker=ports[2 * n], controller=ports[2 * n + 1]) for n in range(self._count)]
        if self._port is not None:
            pairs[0] = NodePorts(broker=self._port, controller=pairs[0].controller)
        return ClusterLayout(_cluster_id(directory, self._count), pairs, self._sasl, self._settings)

    def _launch(self, nodes: list[Node], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        with ThreadPoolExecutor(max_workers=max(len(nodes), 1)) as pool:
            list(pool.map(Node.write_properties, nodes))
            for node in nodes:
                node.launch(outlives_parent=self._outlives_parent)
            list(pool.map(lambda node: wait_until_ready(node, deadline), nodes))

    def stop(self) -> None:
        """End every node and remove a temporary data directory; does nothing where nothing runs.

        A cluster on a temporary directory is killed, since nobody will read its data; one on a given directory shuts
        down in order, and is killed after 15 s.
        """
        if self._given_dir is not None:
            self._shut_down()
        for node in self._nodes.values():
            node.kill()
        if self._scratch is not None:
            self._scratch.remove()
            self._nodes, self._scratch = {}, None

    def _shut_down(self) -> None:
        for node in self._nodes.values():
            node.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for node in self._nodes.values():
            node.wait(remaining(deadline))

    def kill(self, node: int = 1) -> None:
        """End a node as `kill -9` does; its data stays, and `restart` brings it back."""
        self._node(node).kill()

    def pause(self, node: int = 1) -> None:
        """Freeze a node (SIGSTOP): its connections stay open and silent."""
        self._running(node).signal(signal.SIGSTOP)

    def resume(self, node: int = 1) -> None:
        """Let a frozen node go on (SIGCONT)."""
        self._running(node).signal(signal.SIGCONT)

    def restart(self, node: int = 1, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Bring a node back on the same ports and data, shutting it down in order first where it still runs."""
        again = self._node(node)
        again.terminate()
        if not again.wait(_STOP_TIMEOUT_S):
            again.kill()
        self._launch([again], timeout_s)

    def _any(self) -> Node:
        return self._node(1)

    def _node(self, number: int) -> Node:
        if not self._nodes:
            raise BrokerStartError("the embedded Kafka has not been started: call start() first")
        if number not in self._nodes:
            raise ValueError(f"there is no node {number}: the nodes are 1 to {self._count}")
        return self._nodes[number]

    def _running(self, number: int) -> Node:
        node = self._node(number)
        _ = node.pid  # raises where it is not running
        return node

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _cluster_id(directory: Path, nodes: int) -> str:
    """The identity of the cluster in this directory, made at its first start; raises ValueError on another size."""
    record = directory / _IDENTITY
    if record.exists():
        known = json.loads(record.read_text(encoding="utf-8"))
        if known["nodes"] != nodes:
            raise ValueError(
                f"{directory} holds a cluster of {known['nodes']} nodes, not {nodes}: give another directory"
            )
        return str(known["cluster_id"])
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
    # Kafka's tools would take a leading dash for an option.
    cluster_id = cluster_id if not cluster_id.startswith("-") else "A" + cluster_id[1:]
    record.write_text(json.dumps({"cluster_id": cluster_id, "nodes": nodes}), encoding="utf-8")
    return cluster_id
