"""Jobs that the tests of the workers run; importable, because process children import them by name."""

import asyncio
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from mainspring.jobs import (
    App,
    AsyncJob,
    BlockingJob,
    ConcurrencyModel,
    CpuBoundJob,
    NonRetryableError,
    RetryLater,
    current_context,
)

PROCESS = ConcurrencyModel.PROCESS
app = App("tests")
gate = threading.Event()


class TwoArgumentsError(Exception):
    """Cannot be rebuilt from its message, so it cannot be unpickled."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


class OwnBaseError(BaseException):
    """Not an Exception."""


class MuteError(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


class HalfMadeRetry(RetryLater):
    """A subclass that forgets its base's own `__init__`."""

    def __init__(self) -> None:
        Exception.__init__(self, "half made")


async def a_echo(value: Any = None) -> Any:
    return value


def t_echo(value: Any = None) -> Any:
    return value


def p_echo(value: Any = None) -> Any:
    return value


_RAISED: dict[str, BaseException] = {
    "value": ValueError("no good"),
    "final": NonRetryableError("give up"),
    "later": RetryLater(2.5, "not now"),
    "never": RetryLater(1e300, "not in this world"),
    "half": HalfMadeRetry(),
    "mute": MuteError(),
    "timeout": TimeoutError("the job's own"),
    "two": TwoArgumentsError("one", "two"),
    "base": OwnBaseError("base"),
    "cancelled": asyncio.CancelledError(),
}
_RETURNED: dict[str, Any] = {
    "lambda": lambda: None,
    "lock": threading.Lock(),
    "nan": {"a": [1.0, float("nan")]},
    "large": "x" * 300_000,
}


def _raise(kind: str) -> Any:
    if kind == "exit":
        sys.exit(3)
    if kind in _RAISED:
        raise _RAISED[kind].with_traceback(None)
    return _RETURNED[kind]


async def a_raise(kind: str) -> Any:
    return _raise(kind)


def t_raise(kind: str) -> Any:
    return _raise(kind)


def p_raise(kind: str) -> Any:
    return _raise(kind)


async def a_stop_loop() -> str:
    """Stops the loop that all async jobs share."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return "went on"


async def a_wait() -> str:
    await asyncio.Event().wait()
    return "never"


def t_wait() -> str:
    gate.wait(30)
    return "late"


def p_wait() -> str:
    time.sleep(3600)  # stands for work that never ends; its process is killed
    return "never"


async def a_sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


def t_report_and_wait() -> None:
    current_context().progress(0.5, "half way")
    gate.wait(30)


async def a_stubborn() -> str:
    while not gate.is_set():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            continue
    return "late"


async def a_context() -> dict[str, Any]:
    context = current_context()
    context.progress(0.5, "half")
    return {"id": context.job_id, "token": context.fencing_token, "key": context.idempotency_key}


def t_context() -> dict[str, Any]:
    context = current_context()
    return {"id": context.job_id, "token": context.fencing_token, "key": context.idempotency_key}


def p_context() -> dict[str, Any]:
    context = current_context()
    context.progress(0.25, "quarter")
    return {"id": context.job_id, "token": context.fencing_token, "key": context.idempotency_key, "pid": os.getpid()}


async def a_print(word: str, times: int = 1) -> None:
    for _ in range(times):
        print(word)
        await asyncio.sleep(0)
    print(word, "to stderr", file=sys.stderr)
    logging.getLogger("job").warning("logged %s", word)


def t_print(word: str, times: int = 1) -> None:
    for _ in range(times):
        print(word)
    print(word, "to stderr", file=sys.stderr)
    logging.getLogger("job").warning("logged %s", word)


def p_print(word: str, times: int = 1) -> None:
    t_print(word, times)
    os.write(1, f"{word} by descriptor\n".encode())


def p_kill_self() -> None:
    print("about to die")
    os.kill(os.getpid(), signal.SIGKILL)


def p_exit_hard() -> None:
    os._exit(7)


def p_ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def p_cooperate() -> str:
    while not current_context().is_cancelled:
        time.sleep(0.005)
    return "cleaned up"


def t_hold_gil(seconds: float) -> str:
    """Holds the interpreter in a C call, as a bad extension would."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    return "held"


def p_hold_gil(seconds: float) -> str:
    return t_hold_gil(seconds)


def p_hooked() -> Any:
    return app.state.resource


@app.on_start
def open_resource() -> None:
    app.state.resource = f"open in {os.getpid()}"


@app.on_start
async def open_async_resource() -> None:
    await asyncio.sleep(0)
    app.state.async_resource = True


@app.on_stop
def close_resource() -> None:
    app.state.resource = None


IN_WORKER = (
    *(a_echo, a_raise, a_stop_loop, a_wait, a_sleep, a_stubborn, a_context, a_print),
    *(t_echo, t_raise, t_wait, t_context, t_print, t_hold_gil, t_report_and_wait),
)
IN_PROCESS = (
    *(p_echo, p_raise, p_wait, p_context, p_print, p_kill_self, p_exit_hard),
    *(p_ignore_signals, p_cooperate, p_hold_gil, p_hooked),
)
for _function in IN_WORKER:
    app.job(_function)
for _function in IN_PROCESS:
    globals()[_function.__name__] = app.job(model=PROCESS)(_function)


@app.register
class Add(AsyncJob):
    """An async job as a class."""

    a: int
    b: int = 1

    async def run(self) -> int:
        return self.a + self.b


@app.register
@dataclass
class Concat(BlockingJob):
    """A thread job as a class."""

    words: list[str]

    def run_sync(self) -> str:
        return " ".join(self.words)


@app.register
class Square(CpuBoundJob):
    """A process job as a class."""

    n: int

    def run_sync(self) -> int:
        return self.n * self.n
