"""A scheduler in a process of its own that kills itself at a chosen point.

`python dying.py BOOTSTRAP PREFIX POINT TXNS [DIR]`

POINT is a call of the producer with `before-` or `after-` in front, or `never`; TXNS transactions are let pass first.
With `following` it is a standby that dies with rows that it has read and not told its table; TXNS rows pass first.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from mainspring.processors.core import Rules
from mainspring.processors.engine.ports import Received
from mainspring.processors.engine.replay import Replay
from mainspring.processors.scheduler import Scheduler, SchedulerConfig
from mainspring.schemas import Codec
from mainspring.topics import Connection, Topology
from tests.engine.faults import Faults, FaultyOutput, faulty


def main() -> None:
    bootstrap, prefix, point, transactions, *rest = sys.argv[1:]
    faults = Faults()
    left = int(transactions)

    def die(_: FaultyOutput) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def die_following(replay: Replay, records: Sequence[Received], as_of_ms: int) -> None:
        nonlocal left
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= len(records)
        take(replay, records, as_of_ms)

    take = Replay.take
    if point == "following":
        patch.object(Replay, "take", die_following).start()
    when, _, call = point.partition("-")
    if when == "before":
        faults.before[call] = die
    elif when == "after":
        faults.after[call] = die
    topology = Topology(prefix=prefix, partitions=2, work_partitions=2)
    connection = Connection(bootstrap)
    config = SchedulerConfig(
        connection=connection,
        topology=topology,
        codec=Codec.embedded(),
        rules=Rules(partitions=2),
        session_timeout_ms=2_000,
        linger_ms=5,
        state_dir=Path(rest[0]) if rest else None,
        standby=point == "following",
    )
    engine = Scheduler(config, kafka=faulty(connection, topology, faults, transaction_timeout_ms=60_000)).build("dying")
    was_ready = False
    while True:
        engine.step(50)
        if not was_ready and len(engine.status().ready) == topology.partitions:
            was_ready = True
            sys.stdout.write("ready\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
