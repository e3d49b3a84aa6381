"""The compose file, run from end to end where a Docker engine answers (see base_images.sh for how to have one)."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mainspring.local.ports import free_ports

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]
REPOSITORY = Path(__file__).parents[2]
BASE_IMAGES = ["python:3.11-slim", "apache/kafka:4.3.1"]
WORKERS = 4


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _succeeds(*command: str) -> bool:
    return shutil.which(command[0]) is not None and _run(*command).returncode == 0


def _compose_program() -> list[str]:
    """The compose that is there; skips the test where there is none, no engine, or nothing to build from."""
    if not _succeeds("docker", "info"):
        pytest.skip("no Docker engine answers")
    for image in BASE_IMAGES:
        if not _succeeds("docker", "image", "inspect", image) and not _succeeds("docker", "pull", image):
            pytest.skip(f"the image {image} is neither here nor to be had: run tests/deploy/base_images.sh")
    for program in (["docker", "compose"], ["docker-compose"]):
        if _succeeds(*program, "version"):
            return program
    pytest.skip("no compose program is installed")


@dataclass(frozen=True)
class Stack:
    """One project of the compose file, apart from any other on this engine."""

    program: list[str]
    project: str
    ports: tuple[int, ...]

    def __call__(self, *arguments: str) -> str:
        """Run compose; its standard output. Fails the test with everything it said where it fails."""
        kafka_port, http_port = map(str, self.ports)
        ran = _run(*self.program, "-p", self.project, *arguments, KAFKA_PORT=kafka_port, HTTP_PORT=http_port)
        assert ran.returncode == 0, f"{arguments}: {ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def mainspring(self, *arguments: str) -> Any:
        """Run the command line inside the projector's container; what it prints as JSON."""
        return json.loads(self("exec", "-T", "projector", "mainspring", *arguments, "-o", "json"))

    def containers(self, service: str) -> list[str]:
        """The ids of a service's containers, running or not."""
        return self("ps", "-q", service).split()


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    running = Stack(_compose_program(), f"mainspring-{secrets.token_hex(4)}", free_ports(2))
    try:
        running("build")
        running("up", "-d", "--scale", f"worker={WORKERS}")
        yield running
    finally:
        running("down", "--volumes", "--timeout", "5")


def test_a_job_runs_from_submit_to_result(stack: Stack) -> None:
    # when
    job = stack.mainspring("job", "submit", "hello", "--payload", '{"name": "compose"}', "--wait")

    # then
    assert job["status"] == "COMPLETED"
    assert job["result"] == "Hello, compose!"


def test_every_worker_that_was_asked_for_runs(stack: Stack) -> None:
    # when
    workers = stack.containers("worker")
    states = [_run("docker", "inspect", "-f", "{{.State.Running}}", worker).stdout.strip() for worker in workers]

    # then
    assert states == ["true"] * WORKERS


def test_jobs_end_although_a_worker_is_killed(stack: Stack) -> None:
    # given
    _run("docker", "kill", stack.containers("worker")[0])

    # when
    jobs = [stack.mainspring("job", "submit", "primes", "--wait") for _ in range(3)]

    # then
    assert [job["status"] for job in jobs] == ["COMPLETED"] * 3


def test_everything_stops_in_order_when_told_to(stack: Stack) -> None:
    # given
    roles = {role: stack.containers(role)[0] for role in ("scheduler", "projector")}

    # when
    stack("stop", *roles)

    # then
    codes = {
        role: _run("docker", "inspect", "-f", "{{.State.ExitCode}}", own).stdout.strip() for role, own in roles.items()
    }
    assert codes == {"scheduler": "0", "projector": "0"}
