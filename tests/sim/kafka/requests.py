"""Requests of the client library that are repeated until they are answered, whether or not anybody waits for them."""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, overload

from tests.sim.kafka.broker import Link, SimBroker
from tests.sim.kafka.errors import BrokerError
from tests.sim.process import Process
from tests.sim.world import Future

__all__ = ["Requests", "after"]

T = TypeVar("T")
U = TypeVar("U")

_BACKOFF = (2_000, 30_000)
_RETRIABLE = frozenset({"CONCURRENT_TRANSACTIONS", "NOT_COORDINATOR"})
_SEQUENCED = "Produce"
"""Sequence numbers keep a second copy of this one out, so it is not sent."""


class Requests:
    """The requests of one producer."""

    def __init__(self, process: Process, broker: SimBroker, owner: str) -> None:
        self.is_broken = False
        """Whether a connection was lost, or a request timed out, since this was cleared."""
        self.late: Callable[[str], int | None] = lambda _: None
        """Asked for each request: how long a first copy of it stays in the network, while a second is sent at once."""
        self._process = process
        self._world = process.world
        self._link = Link(process, broker)
        self._owner = owner

    @overload
    def repeat(
        self, name: str, handle: Callable[[], Future[T]], seen: Callable[[str, str], Exception]
    ) -> Future[T]: ...
    @overload
    def repeat(self, name: str, handle: Callable[[], T], seen: Callable[[str, str], Exception]) -> Future[T]: ...
    def repeat(self, name: str, handle: Callable[[], Any], seen: Callable[[str, str], Exception]) -> Future[Any]:
        """Sends a request until it is answered with more than "later". `seen`: what a refusal means to the client."""
        done: Future[Any] = Future()

        def send() -> None:
            stuck = None if name == _SEQUENCED else self.late(name)
            if stuck is not None:
                # The connection breaks: the client sends again on a new one, and the old packet is still out there.
                self._world.note("late", self._owner, name, stuck // 1000)
                self._world.saw(f"late {name}")
                self.is_broken = True
                self._world.after(stuck, lambda: _ignore(handle))
            self._link.call(handle).then(answered)

        def answered(answer: Future[Any]) -> None:
            try:
                done.set(answer.result())
            except BrokerError as error:
                if error.code in _RETRIABLE:
                    self._world.after(self._world.rng.randrange(*_BACKOFF), lambda: self._process.background(send))
                else:
                    done.fail(seen(error.code, name))

        send()
        return done


def after(first: Future[T], then: Callable[[T], Future[U]]) -> Future[U]:
    """One answer after the other; the first error is the error."""
    done: Future[U] = Future()

    def finish(answer: Future[U]) -> None:
        try:
            done.set(answer.result())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is handed on
            done.fail(error)

    def go_on(answer: Future[T]) -> None:
        try:
            value = answer.result()
        except Exception as error:  # noqa: BLE001 - as above
            done.fail(error)
        else:
            then(value).then(finish)

    first.then(go_on)
    return done


def _ignore(handle: Callable[[], object]) -> None:
    with contextlib.suppress(BrokerError):
        handle()
