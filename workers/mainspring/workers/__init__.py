"""Workers: they take offers, run handlers and report what became of them."""

from typing import TYPE_CHECKING, Any

from mainspring.workers.registry import Registry

if TYPE_CHECKING:
    from mainspring.workers.config import WorkerConfig, WorkerStatus
    from mainspring.workers.main import run_worker
    from mainspring.workers.worker import Worker

__all__ = ["Registry", "Worker", "WorkerConfig", "WorkerStatus", "run_worker"]

# Process children import this package for every start: they need neither Kafka nor Avro.
_LAZY = {
    "Worker": "worker",
    "WorkerConfig": "config",
    "WorkerStatus": "config",
    "run_worker": "main",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)
