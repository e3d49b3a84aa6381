"""What simulated jobs do, written in their payload, and the handlers that a worker knows."""

import json
from dataclasses import asdict, dataclass

from mainspring.jobs import App
from mainspring.workers.registry import Registry

__all__ = ["KNOWN", "LATER", "UNKNOWN", "Behaviour", "registry"]

KNOWN = "known"
LATER = "later"
"""A name that workers learn in the middle of a run, as in a rolling deploy."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How an attempt goes. `fails`: attempts up to this number fail; -1: all. `deaf`: it cannot be stopped."""

    ms: int = 100
    fails: int = 0
    deaf: bool = False
    for_good: bool = False

    def payload(self) -> bytes:
        """As a job's payload."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, payload: bytes) -> "Behaviour":
        """From a job's payload."""
        return cls(**json.loads(payload))


def registry(*names: str) -> Registry:
    """The handlers of these names; nobody calls them."""
    app = App("sim")
    for name in names:

        @app.job(name=name)
        def handler(ms: int = 0, fails: int = 0, deaf: bool = False, for_good: bool = False) -> None:
            raise AssertionError("the simulation runs no code of jobs")

    return Registry(app)
