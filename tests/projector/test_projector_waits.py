"""The projector as a process, and what it waits for: a topic, a database, a broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from mainspring.processors.projector import Projector, ProjectorError
from mainspring.processors.projector.database import parse_url
from mainspring.processors.projector.view import View
from mainspring.topics import Connection
from tests.projector.conftest import Cluster, Running
from tests.support.postgres import PostgresServer
from tests.support.topics import make_topics

pytestmark = pytest.mark.broker


def test_a_topic_that_is_made_after_the_projector_was_started_is_waited_for(
    cluster: Cluster, prefix: str, tmp_path: Path
) -> None:
    later = replace(cluster.topology, prefix=f"{prefix}later.")
    with cluster.projecting(f"sqlite:///{tmp_path / 'view.db'}", topology=later, topic_patience_s=30) as running:
        running.wait_for(lambda status: status.error is not None and "topics apply" in status.error)

        make_topics(cluster.connection, [later.events])

        running.catch_up()


@pytest.mark.postgres
def test_a_database_that_breaks_the_connection_is_waited_for_and_nothing_is_lost(
    cluster: Cluster, postgres: PostgresServer
) -> None:
    url = postgres.new_database()
    cluster.double.submit("before")
    with cluster.projecting(url) as running:
        running.catch_up()

        # when the server ends the projector's connection
        engine = create_engine(parse_url(url))
        with engine.begin() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        engine.dispose()
        cluster.double.submit("after")

        # then it comes back and folds the rest once
        running.wait_for(lambda status: status.events >= 2 and status.is_caught_up)
    with View(url) as view:
        assert {job.job_id for job in view.list().jobs} == {"before", "after"}
        assert view.counts().total == 2


def test_a_broker_that_is_away_is_waited_for(cluster: Cluster, tmp_path: Path) -> None:
    config = cluster.config(f"sqlite:///{tmp_path / 'view.db'}")
    running = Running(Projector(replace(config, connection=Connection("127.0.0.1:1"), admin_timeout_s=0.5)))
    running.start()
    running.wait_for(lambda status: status.error is not None)
    running.stop()
    assert running.error is None


PROGRAM = """
import sys
from mainspring.processors.projector import ProjectorConfig, run_projector
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
bootstrap, prefix, partitions, url = sys.argv[1:]
topology = Topology(prefix=prefix, partitions=int(partitions))
sys.exit(run_projector(ProjectorConfig(
    connection=Connection(bootstrap), topology=topology, codec=Codec.embedded(), url=url)))
"""


def test_as_a_process_it_ends_with_zero_on_sigterm_and_with_one_where_it_cannot_go_on(
    cluster: Cluster, kafka: str, prefix: str, tmp_path: Path
) -> None:
    cluster.double.submit("job")
    url = f"sqlite:///{tmp_path / 'view.db'}"
    arguments = [sys.executable, "-c", PROGRAM, kafka, prefix]
    process = subprocess.Popen([*arguments, "2", url], env=os.environ | {"PYTHONWARNINGS": "ignore"})
    try:
        wait_until_there(url, "job")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()

    refused = subprocess.run([*arguments, "3", url], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert "has 2 partitions" in refused.stderr


def wait_until_there(url: str, job_id: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with View(url) as view:
                if view.get(job_id) is not None:
                    return
        except ProjectorError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{job_id} is not in the view in time")
