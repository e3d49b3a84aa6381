"""The code of jobs under the kit: sleeps are virtual, what is real stays real, and no job leaks into another."""

import asyncio
import logging
import socket
import threading
import time

import pytest

from mainspring.client import JobFailedError
from mainspring.jobs import App, ConcurrencyModel, JobDefinitionError, JobStatus, RetryPolicy, current_context
from mainspring.testing import InsideJobError, Mainspring
from mainspring.testing.kit import START

app = App("code")
seen: list[str] = []
kits: list[Mainspring] = []


@pytest.fixture(autouse=True)
def _fresh(mainspring: Mainspring) -> None:
    seen.clear()
    kits[:] = [mainspring]


@app.job
async def interleaves() -> list[str]:
    order: list[str] = []

    async def step(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append(name)

    await asyncio.gather(step("c", 3600), step("a", 0.001), step("b", 60))
    return order


@app.job
async def times_itself_out() -> str:
    try:
        async with asyncio.timeout(30):
            await asyncio.sleep(31)
    except TimeoutError:
        return "its own"
    return "none"


@app.job
async def asks_a_thread() -> str:
    async with asyncio.timeout(0.001):
        return await asyncio.to_thread(_really_waits)


def _really_waits() -> str:
    time.sleep(0.02)
    return threading.current_thread().name


@app.job
async def talks_over_a_socket() -> str:
    here, there = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=here)
    answer = threading.Thread(target=lambda: there.sendall(there.recv(10).upper()))
    answer.start()
    writer.write(b"hello")
    async with asyncio.timeout(1):
        received = await reader.readexactly(5)
    answer.join()
    writer.close()
    await writer.wait_closed()
    there.close()
    return received.decode()


@app.job
async def says(name: str, times: int) -> None:
    for number in range(times):
        print(f"{name} {number}")
        logging.getLogger("chatty").warning("%s logs %d", name, number)
        await asyncio.sleep(1)


@app.job
def says_in_a_thread(name: str) -> None:
    print(f"{name} begins")
    time.sleep(1.5)
    print(f"{name} ends")


@app.job
def watches_for_its_cancel() -> str:
    context = current_context()
    while not context.is_cancelled:
        time.sleep(0.5)
    seen.append(f"heard at {(kits[0].now - START).total_seconds()}")
    return "stopped"


@app.job
def is_deaf(seconds: float) -> str:
    seen.append(f"{current_context().attempt} begins")
    time.sleep(seconds)
    seen.append(f"{current_context().attempt} ends")
    return "done"


@app.job(model=ConcurrencyModel.PROCESS)
def is_a_process(seconds: float) -> str:
    is_deaf(seconds)
    return "done"


@app.job
async def is_stubborn() -> None:
    for _ in range(3):
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            seen.append("no")
    await asyncio.sleep(100)


@app.job
async def makes_jobs(count: int) -> list[str]:
    handles = [kits[0].submit(says_in_a_thread.job(f"child {number}")) for number in range(count)]
    return [handle.accepted().job_id for handle in handles]


@app.job
async def makes_jobs_with_await(count: int) -> list[str]:
    client = kits[0].async_client
    return [(await client.submit(says_in_a_thread.job(f"child {number}"))).job_id for number in range(count)]


@app.job
async def moves_time() -> None:
    kits[0].advance("1h")


@app.job
def exits() -> None:
    raise SystemExit(3)


@app.job
def makes_a_loop_of_its_own() -> str:
    return asyncio.run(asyncio.sleep(0, "ran"))


@app.job
async def breeds() -> None:
    kits[0].submit(breeds.job())


def test_sleeps_of_one_job_end_in_the_order_of_their_times(mainspring: Mainspring) -> None:
    assert mainspring.submit(interleaves.job()).result() == ["a", "b", "c"]


def test_a_job_may_have_time_outs_of_its_own(mainspring: Mainspring) -> None:
    assert mainspring.submit(times_itself_out.job()).result() == "its own"


def test_a_call_in_a_thread_takes_no_virtual_time_however_long_it_takes(mainspring: Mainspring) -> None:
    assert "asyncio" in mainspring.submit(asks_a_thread.job()).result()


def test_sockets_are_real(mainspring: Mainspring) -> None:
    assert mainspring.submit(talks_over_a_socket.job()).result() == "HELLO"


def test_the_output_of_jobs_is_kept_apart_and_away_from_that_of_the_test(
    mainspring: Mainspring, capsys: pytest.CaptureFixture[str]
) -> None:
    # given
    ada, grace, mary = (
        mainspring.submit(says.job("ada", 2)),
        mainspring.submit(says.job("grace", 1)),
        mainspring.submit(says_in_a_thread.job("mary")),
    )

    # when
    mainspring.join()

    # then
    assert [line for line in ada.output.splitlines() if "logs" not in line] == ["ada 0", "ada 1"]
    assert [line.split("chatty: ")[-1] for line in grace.output.splitlines()] == ["grace 0", "grace logs 0"]
    assert mary.output == "mary begins\nmary ends\n"
    assert "ada" not in capsys.readouterr().out
    assert "| mary ends" in mary.story


def test_a_thread_hears_of_its_cancel_and_its_slot_is_kept_until_it_returns(mainspring: Mainspring) -> None:
    job = mainspring.submit(watches_for_its_cancel.job())
    mainspring.advance("10s")

    outcome = job.cancel("enough")

    assert outcome.took_effect
    job.assert_cancelled("REQUESTED")
    mainspring.advance("1s")
    assert seen == ["heard at 10.5"]


def test_a_retry_never_runs_beside_a_thread_that_timed_out(mainspring: Mainspring) -> None:
    job = mainspring.submit(is_deaf.job(60.0), timeout=5, retry=RetryPolicy(max_retries=1, base_delay=1, jitter=False))

    assert job.wait() is JobStatus.TIMED_OUT

    assert seen[:3] == ["1 begins", "1 ends", "2 begins"]


def test_a_process_that_times_out_is_killed_where_it_stands(mainspring: Mainspring) -> None:
    job = mainspring.submit(is_a_process.job(60.0), timeout=5)

    assert job.wait() is JobStatus.TIMED_OUT
    mainspring.advance("5m")

    assert seen == ["1 begins"]


def test_a_process_job_that_no_process_could_import_is_refused() -> None:
    local = App("local")

    @local.job(model=ConcurrencyModel.PROCESS)
    def nowhere() -> None: ...

    with pytest.raises(JobDefinitionError, match="define it at the top of a module"):
        Mainspring(local)
    with Mainspring() as kit, pytest.raises(JobDefinitionError):
        kit.submit(nowhere.job())


def test_a_stubborn_job_is_cancelled_again_and_ends_in_time_for_the_others(mainspring: Mainspring) -> None:
    job = mainspring.submit(is_stubborn.job(), timeout=10)

    assert job.wait() is JobStatus.TIMED_OUT
    assert (mainspring.now - START).total_seconds() == 11, "a second of patience, as the real worker has"
    mainspring.advance("10s")
    assert seen == ["no"] * 3


@pytest.mark.parametrize("job", [makes_jobs, makes_jobs_with_await], ids=["blocking", "await"])
def test_jobs_make_jobs(mainspring: Mainspring, job: object) -> None:
    parent = mainspring.submit(job, [3])  # type: ignore[arg-type]  # parametrize loses the type

    ids = parent.result()
    mainspring.join()

    assert [mainspring.handle(job_id).output for job_id in ids] == [
        f"child {n} begins\nchild {n} ends\n" for n in range(3)
    ]


def test_a_job_that_moves_time_is_told_that_it_cannot(mainspring: Mainspring) -> None:
    job = mainspring.submit(moves_time.job())

    with pytest.raises(JobFailedError):
        job.result()
    job.assert_failed(InsideJobError, match="cannot move the time")


def test_a_job_that_exits_fails_and_ends_nothing_else(mainspring: Mainspring) -> None:
    job = mainspring.submit(exits.job())
    job.wait()
    job.assert_failed("SystemExit")


async def test_everything_works_inside_a_running_event_loop(mainspring: Mainspring) -> None:
    loop = asyncio.get_running_loop()
    jobs = [mainspring.submit(interleaves.job()), mainspring.submit(makes_a_loop_of_its_own.job())]

    mainspring.advance("2h")

    assert [job.result() for job in jobs] == [["a", "b", "c"], "ran"]
    assert asyncio.get_running_loop() is loop


def test_jobs_that_make_each_other_without_time_passing_are_found(
    mainspring: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.testing.simulation.ROUNDS_MAX", 100)
    mainspring.submit(breeds.job())

    with pytest.raises(Exception, match="no time passes"):
        mainspring.advance("1s")


def test_a_fake_sleep_of_the_test_stays(mainspring: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)

    assert mainspring.submit(is_deaf.job(60.0)).result() == "done"

    assert naps == [60.0]
    assert mainspring.now == START


def test_sleep_is_real_again_when_no_time_is_moved(mainspring: Mainspring) -> None:
    mainspring.submit(is_deaf.job(1.0)).result()

    assert time.sleep.__module__ == "time"


def test_hooks_run_once_before_the_first_job_and_after_the_last() -> None:
    # given
    hooked = App("hooked")

    @hooked.on_start
    async def connect() -> None:
        await asyncio.sleep(0.5)
        hooked.state.pool = asyncio.get_running_loop()

    @hooked.on_stop
    def disconnect() -> None:
        seen.append("stopped")

    @hooked.job
    async def uses_it() -> bool:
        return hooked.state.pool is asyncio.get_running_loop()

    # when
    with Mainspring(workers=2) as kit:
        results = [kit.submit(uses_it.job()).result() for _ in range(4)]
        assert seen == []

    # then
    assert results == [True] * 4
    assert seen == ["stopped"]


def _told(kit: Mainspring) -> list[str]:
    jobs = [interleaves.job(), says.job("x", 3), says_in_a_thread.job("y"), is_deaf.job(3.0), exits.job()]
    kit.submit_many(jobs * 5, retry=RetryPolicy(max_retries=2))
    kit.advance("2s")
    kit.workers[0].kill()
    kit.join()
    return [repr(event) for event in kit.events()]


@pytest.mark.parametrize("slots", [1, 3])
def test_the_same_test_runs_the_same_way_every_time(slots: int) -> None:
    with Mainspring(slots=slots, workers=2) as one, Mainspring(slots=slots, workers=2) as two:
        assert _told(one) == _told(two)
