"""A worker as a process of its own: `python -m tests.support.worker_process BOOTSTRAP PREFIX CHANGES` (JSON)."""

import json
import sys

from mainspring.schemas.codec import Codec
from mainspring.topics import Connection, Topology
from mainspring.workers import Registry, Worker, WorkerConfig, run_worker
from tests.support import worker_jobs


def main(bootstrap: str, prefix: str, changes: str) -> int:
    """Runs until told to stop; says on stdout that it works."""
    config = WorkerConfig(
        connection=Connection(bootstrap),
        topology=Topology(prefix=prefix, partitions=2, work_partitions=2),
        codec=Codec.embedded(),
        **json.loads(changes),
    )
    return run_worker(config, Registry(worker_jobs.app), on_start=_tell)


def _tell(worker: Worker) -> None:
    sys.stdout.write(f"{worker.incarnation}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
