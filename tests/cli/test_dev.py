"""`mainspring dev`: everything in one terminal, and nothing left behind."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from mainspring.local.ports import free_ports
from tests.cli.installation import MAINSPRING, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def lines_until(process: "subprocess.Popen[str]", *wanted: str) -> Iterator[str]:
    """The lines of the process until each of the wanted texts has been in one."""
    missing = set(wanted)
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        missing = {text for text in missing if text not in line}
        if not missing:
            return
    raise AssertionError(f"it ended with {process.wait()} before it said {missing}")


@contextmanager
def dev(cwd: Path, *arguments: str, **environ: str) -> "Iterator[subprocess.Popen[str]]":
    """`mainspring dev` with its lines in one stream; killed at the end if it still runs."""
    process = subprocess.Popen(
        [*MAINSPRING, "dev", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment() | environ,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_dev_runs_jobs_with_nothing_given_and_ctrl_c_leaves_nothing_running(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    # given a view that others read, and a file in it that only a rebuild would take away
    others = tmp_path / "others.db"
    others.write_text("not ours")
    with dev(tmp_path, "--port", str(port), MAINSPRING_VIEW__URL=f"sqlite:///{others}") as process:
        # given everything is up: each process has said so under its own name
        said = "".join(lines_until(process, "Ctrl-C stops everything", "scheduler │ 12 partitions ready"))
        assert "worker    │" in said
        assert "hello(name='world')" in said
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 4

        # when a job is submitted from another directory, with the settings that the banner names
        (config,) = re.findall(r"MAINSPRING_CONFIG=(\S+)", said)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()

        def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
            environ = environment() | {"MAINSPRING_CONFIG": config}
            command = [*MAINSPRING, "job", *arguments]
            return subprocess.run(
                command, capture_output=True, text=True, env=environ, cwd=elsewhere, timeout=90, check=False
            )

        ran = run("submit", "hello", "--payload", '{"name": "you"}', "--wait", "--id", "first")

        # then it runs, with the options that the sample app declares, its end is told, and the view has it
        assert (ran.returncode, ran.stdout) == (0, "Hello, you!\n"), ran.stderr
        assert "no --app" not in ran.stderr
        assert "first" in "".join(lines_until(process, "JobCompleted"))
        got = run("get", "first", "-o", "json")
        assert got.returncode == 0, got.stderr

        # and Ctrl-C ends all of it, and leaves neither settings nor a view of what is gone; others' is untouched
        os.kill(process.pid, signal.SIGINT)
        rest = process.communicate(timeout=60)[0]
        assert process.returncode == 0, rest
        _, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []
        assert list((tmp_path / ".mainspring").iterdir()) == []
        assert others.read_text() == "not ours"


@pytest.mark.parametrize("app", ["nosuch:app", "mainspring.cli.sample:nosuch", "json:dumps"])
def test_an_app_that_cannot_be_loaded_ends_dev_before_anything_is_started(app: str, tmp_path: Path) -> None:
    with dev(tmp_path, "--app", app) as process:
        said = process.communicate(timeout=60)[0]

    assert process.returncode == 2
    assert "kafka" not in said
    assert app.partition(":")[0] in said


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with dev(tmp_path, "--port", str(port)) as process:
            said = process.communicate(timeout=60)[0]

    assert process.returncode == 2
    assert f"Port {port} is taken." in said


def test_dev_ends_when_one_of_its_processes_ends(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with dev(tmp_path, "--port", str(port)) as process:
        "".join(lines_until(process, "Ctrl-C stops everything"))
        children = psutil.Process(process.pid).children(recursive=True)
        (projector,) = [child for child in children if "projector" in child.cmdline()]

        projector.kill()
        rest = process.communicate(timeout=60)[0]

    assert process.returncode == 1
    assert "The projector has ended with exit code -9, so everything stops." in rest
    assert psutil.wait_procs(children, timeout=10)[1] == []
