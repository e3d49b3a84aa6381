"""While a simulation runs, what the product logs is heard by the simulation and nobody else."""

import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from tests.sim.world import World

__all__ = ["quiet"]


@contextmanager
def quiet(world: World) -> Iterator[None]:
    """Takes over structlog and silences the standard library's logging."""

    def hear(_logger: Any, _method: str, told: MutableMapping[str, Any]) -> str:
        event = told.pop("event")
        world.note("log", event, *told.values())
        world.saw(f"log: {event}" + (f": {told['why']}" if event == "producer replaced" else ""))
        raise structlog.DropEvent

    before = structlog.get_config()
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    structlog.configure(processors=[hear], wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.configure(**before)
        logging.disable(level)
