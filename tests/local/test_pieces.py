"""The parts of the embedded Kafka that need no broker."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from mainspring.local import KafkaDownloadError, runtime
from mainspring.local.layout import ClusterLayout, NodePorts, server_properties
from mainspring.local.ports import LOOPBACK, free_ports, is_free


def _properties(layout: ClusterLayout, node: int = 1) -> dict[str, str]:
    lines = server_properties(layout, node, Path("data")).splitlines()
    return dict(line.split("=", 1) for line in lines)


def _layout(nodes: int, **settings: str) -> ClusterLayout:
    ports = [NodePorts(broker=20_000 + node, controller=21_000 + node) for node in range(nodes)]
    return ClusterLayout("cluster", ports, settings=settings)


def test_everything_listens_on_loopback_alone() -> None:
    # when
    properties = _properties(_layout(1))

    # then
    listeners = properties["listeners"].split(",") + properties["advertised.listeners"].split(",")
    assert all(f"//{LOOPBACK}:" in listener for listener in listeners)


@pytest.mark.parametrize(("nodes", "factor", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_replication_follows_the_number_of_nodes(nodes: int, factor: str, in_sync: str) -> None:
    # when
    properties = _properties(_layout(nodes))

    # then
    assert properties["transaction.state.log.replication.factor"] == factor
    assert properties["transaction.state.log.min.isr"] == in_sync
    assert properties["controller.quorum.voters"].count("@") == nodes


def test_a_setting_of_the_caller_wins() -> None:
    # when
    properties = _properties(_layout(1, **{"num.io.threads": "9"}))

    # then
    assert properties["num.io.threads"] == "9"


def test_ports_are_free_and_different() -> None:
    # when
    ports = free_ports(5)

    # then
    assert len(set(ports)) == 5
    assert all(is_free(port) for port in ports)


def test_a_port_that_someone_listens_on_is_not_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_jars_that_cannot_be_had_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a resolver that brings one damaged jar
    name = next(iter(runtime.pinned_jars()))
    damaged = tmp_path / name
    damaged.write_bytes(b"not a jar")
    monkeypatch.setattr(runtime, "_resolve", lambda scratch: {name: damaged})
    notes: list[str] = []

    # when
    with pytest.raises(KafkaDownloadError, match=f"{name} has the SHA-256"):
        runtime.prepare(tmp_path / "cache", notes.append)

    # then
    assert not list((tmp_path / "cache").rglob("*.jar"))
    assert "once" in notes[0]


def test_a_jar_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given
    monkeypatch.setattr(runtime, "_resolve", lambda scratch: {})

    # when, then
    with pytest.raises(KafkaDownloadError, match=r"\.jar was not among the jars"):
        runtime.prepare(tmp_path)
