"""`mainspring demo`, for real: it ends with 0 only where all is right, and what it keeps can be read afterwards."""

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from mainspring.local import EmbeddedKafka

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

_DEMO_S, _COMMAND_S = 110, 60
COMMAND = [sys.executable, "-m", "mainspring.cli"]


def _environment(tmp_path: Path) -> dict[str, str]:
    """Ours, without settings that would lead the demo elsewhere; its temporary files go to the test's directory."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")}
    return ours | {"TMPDIR": str(tmp_path)}


def _run(tmp_path: Path, *arguments: str, timeout_s: int = _COMMAND_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=_environment(tmp_path),
        timeout=timeout_s,
        check=False,
    )


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.timeout(240)
def test_the_demo_kills_a_worker_and_a_scheduler_and_every_job_ends_as_written_down_before(tmp_path: Path) -> None:
    # When the demo runs and keeps what it did
    kept = tmp_path / "kept"
    done = _run(tmp_path, "demo", "--keep", str(kept), "-o", "json", timeout_s=_DEMO_S)

    # Then it says that all was right, and its words are those of the plan
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report == _json(kept / "report.json")
    planned = {line["job_id"]: line["status"] for line in _json(kept / "plan.json")}
    assert {job["job_id"]: job["actual"] for job in report["jobs"]} == planned
    assert report["ok"]
    assert report["verify"]["ok"]
    # The tables have a row for the schedule, too.
    assert report["verify"]["table_rows"] - 1 == report["verify"]["view_rows"] == len(planned)

    # And both kills hit something, and both were recovered from
    worker, scheduler = report["kills"]
    assert (worker["name"], scheduler["name"]) == ("worker-1", "scheduler-1")
    assert sum(job["lost"] for job in report["jobs"]) >= 1
    assert all(kill["recovered_ms"] > 0 for kill in report["kills"])
    assert "kill -9 worker-1" in done.stderr
    assert "kill -9 scheduler-1" in done.stderr

    # And nothing of it is left running
    assert not _processes_that_mention(str(kept))

    # And with its Kafka started again, the commands that it names find the same jobs, and a log without a fault
    settings = tomllib.loads((kept / "mainspring.toml").read_text(encoding="utf-8"))
    port = int(settings["kafka"]["bootstrap"].rpartition(":")[2])
    with EmbeddedKafka(data_dir=kept / "kafka", port=port):
        where = ("--config", str(kept / "mainspring.toml"))
        verified = _run(tmp_path, "log", "verify", *where, "-o", "json")
        assert verified.returncode == 0, verified.stderr
        assert json.loads(verified.stdout)["jobs_by_status"] == Counter(planned.values())
        job = _run(tmp_path, "job", "get", "payment-01", *where, "-o", "json")
        assert json.loads(job.stdout)["result"] == "paid", job.stderr


def test_a_directory_with_something_in_it_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")

    done = _run(tmp_path, "demo", "--keep", str(tmp_path))

    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def _processes_that_mention(text: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if any(text in part for part in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found
