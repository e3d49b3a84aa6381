"""The port of a process, asked over HTTP."""

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mainspring.telemetry import Health, TelemetryServer, metrics


def get(server: TelemetryServer, path: str, method: str = "GET") -> tuple[int, str, str]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], body


def test_metrics_are_in_the_text_format_and_all_begin_with_our_prefix() -> None:
    metrics.COMMANDS.labels(type="SubmitJob", outcome="accepted").inc(3)

    with TelemetryServer(Health()) as server:
        status, kind, body = get(server, "/metrics")

    families = {family.name: family for family in text_string_to_metric_families(body)}
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert {name for name in families if not name.startswith(("mainspring_", "process_", "python_"))} == set()
    sample = next(s for s in families["mainspring_commands"].samples if s.name == "mainspring_commands_total")
    assert sample.labels == {"type": "SubmitJob", "outcome": "accepted"}
    assert sample.value >= 3
    assert families["mainspring_build_info"].samples[0].labels["version"] == metrics.package_version()


@pytest.mark.parametrize(("path", "probe"), [("/livez", "live"), ("/readyz", "ready"), ("/startupz", "startup")])
def test_a_probe_answers_200_when_well_and_503_with_the_reason_when_not(path: str, probe: str) -> None:
    health = Health()
    reasons: list[str | None] = [None]
    getattr(health, probe)("thing", lambda: reasons[0])

    with TelemetryServer(health) as server:
        well = get(server, path)
        reasons[0] = "is broken"
        broken = get(server, path)

    assert (well[0], json.loads(well[2])["checks"]) == (200, {"thing": "ok"})
    assert (broken[0], json.loads(broken[2])) == (
        503,
        {"probe": probe, "status": "failing", "checks": {"thing": "is broken"}},
    )


def test_another_path_is_told_what_there_is() -> None:
    with TelemetryServer(Health()) as server:
        status, _, body = get(server, "/health")

    assert status == 404
    assert "/metrics, /livez, /readyz, /startupz" in body


def test_head_has_no_body() -> None:
    with TelemetryServer(Health()) as server:
        assert get(server, "/livez", "HEAD")[::2] == (200, "")


def test_it_listens_on_loopback_and_on_a_free_port_unless_told_otherwise() -> None:
    with TelemetryServer(Health()) as one, TelemetryServer(Health()) as other:
        assert urlsplit(one.url).hostname == "127.0.0.1"
        assert one.port != other.port


def test_after_stop_the_port_is_free_again_and_stopping_twice_is_safe() -> None:
    server = TelemetryServer(Health()).start()
    port = server.port
    server.stop()
    server.stop()

    with TelemetryServer(Health(), port=port) as again:
        assert again.port == port
