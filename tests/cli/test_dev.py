"""`mainspring dev`: everything in one terminal, and nothing left behind."""

import os
import signal
import subprocess
from collections.abc import Iterator
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


def test_dev_runs_jobs_with_nothing_given_and_ctrl_c_leaves_nothing_running(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    environ = environment() | {"MAINSPRING_VIEW__URL": f"sqlite:///{tmp_path}/view.db"}
    dev = subprocess.Popen(
        [*MAINSPRING, "dev", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environ,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        # given everything is up: each process has said so under its own name
        said = "".join(lines_until(dev, "Ctrl-C stops everything", "runs 5 handlers", "partition ready"))
        assert "scheduler │" in said
        assert "worker    │" in said
        children = psutil.Process(dev.pid).children(recursive=True)
        assert len(children) >= 4

        # when a job is submitted as the banner says
        where = ["--bootstrap", f"127.0.0.1:{port}"]
        submit = [*MAINSPRING, "job", "submit", "hello", "--payload", '{"name": "you"}', "--wait", *where]
        ran = subprocess.run(submit, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=90, check=False)

        # then it runs, and Ctrl-C ends all of it
        assert (ran.returncode, ran.stdout) == (0, "Hello, you!\n"), ran.stderr
        os.kill(dev.pid, signal.SIGINT)
        rest = dev.communicate(timeout=60)[0]
        assert dev.returncode == 0, rest
        _, alive = psutil.wait_procs(children, timeout=10)
        assert alive == []
    finally:
        if dev.poll() is None:
            dev.kill()
            dev.communicate()
