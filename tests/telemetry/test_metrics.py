"""The names of the metrics, and their bounds."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mainspring.telemetry import metrics


def test_job_names_stop_making_new_labels_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_kinds", set())

    labels = [metrics.kind_label(f"job-{number}") for number in range(metrics.MAX_KINDS + 50)]

    assert labels[: metrics.MAX_KINDS] == [f"job-{number}" for number in range(metrics.MAX_KINDS)]
    assert set(labels[metrics.MAX_KINDS :]) == {metrics.OTHER}
    assert metrics.kind_label("job-0") == "job-0"


def test_no_metric_has_a_label_without_a_bound_or_a_name_with_a_wrong_unit() -> None:
    unbounded = {"job_id", "run_id", "attempt", "error", "worker_id", "tenant", "payload"}
    ours = [item for item in vars(metrics).values() if isinstance(item, Counter | Gauge | Histogram)]

    assert len(ours) > 20
    for metric in ours:
        family = next(iter(metric.describe()))
        assert family.name.startswith("mainspring_")
        assert not unbounded & set(metric._labelnames), family.name
        assert not family.name.endswith(("_ms", "_milliseconds", "_minutes"))
        assert family.documentation.endswith(".")


def test_every_metric_is_set_by_somebody() -> None:
    names = {name for name, item in vars(metrics).items() if isinstance(item, Counter | Gauge | Histogram)}
    roots = [Path(__file__).parents[2] / root for root in ("src", "processors", "workers")]
    sources = [path for root in roots for path in root.rglob("*.py") if path.name != "metrics.py"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)

    assert {name for name in names if not re.search(rf"\b{name}\b", text)} == set()


def test_many_observations_at_once_equal_as_many_single_ones() -> None:
    values = [0.0, 0.001, 0.05, 0.050001, 1.0, 7.5, 1_000_000.0, 0.05]
    registry = CollectorRegistry()
    one = Histogram("one", "", registry=registry)
    many = Histogram("many", "", registry=registry)

    for value in values:
        one.observe(value)
    metrics.observe_many(many, values)

    def shown(histogram: Histogram) -> list[tuple[object, ...]]:
        (metric,) = histogram.collect()
        return [
            (sample.name.split("_", 1)[1], sample.labels, sample.value)
            for sample in metric.samples
            if not sample.name.endswith("_created")
        ]

    assert shown(many) == shown(one)
