"""Tests of users' own jobs: a scheduler and workers in memory, under a clock that the test moves."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainspring.testing.async_client import AsyncVirtualClient, AsyncVirtualJobHandle
    from mainspring.testing.errors import InsideJobError, KitError, StandstillError, WorkerGoneError
    from mainspring.testing.handle import VirtualJobHandle
    from mainspring.testing.kit import Mainspring
    from mainspring.testing.worker import VirtualWorker, WorkerLife

__all__ = [
    "AsyncVirtualClient",
    "AsyncVirtualJobHandle",
    "InsideJobError",
    "KitError",
    "Mainspring",
    "StandstillError",
    "VirtualJobHandle",
    "VirtualWorker",
    "WorkerGoneError",
    "WorkerLife",
]

# pytest imports this package wherever Mainspring is installed, for its plugin: that must cost nothing.
_LAZY = {
    "AsyncVirtualClient": "async_client",
    "AsyncVirtualJobHandle": "async_client",
    "InsideJobError": "errors",
    "KitError": "errors",
    "Mainspring": "kit",
    "StandstillError": "errors",
    "VirtualJobHandle": "handle",
    "VirtualWorker": "worker",
    "WorkerGoneError": "errors",
    "WorkerLife": "worker",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)
