"""What to try after the demo: commands that work as they stand."""

import shlex
import shutil
import sys
from pathlib import Path

from mainspring.cli.demo.workplace import Workplace

__all__ = ["next_steps"]


def next_steps(place: Workplace) -> list[tuple[str, str]]:
    """What to try next: commands that work as they stand, and why."""
    us = _our_name()
    if not place.is_kept:
        return [
            (f"{us} demo --keep DIR", "the same, to be looked at afterwards"),
            (f"{us} dev", "everything in one terminal, for jobs of yours"),
        ]
    where = _where(place)
    commands = [
        (f"{us} job list {where}", "all jobs"),
        (f"{us} job get payment-01 {where}", "one that failed twice"),
        (f"{us} log verify {where}", "the audit again"),
    ]
    if place.kafka is not None:
        data, port = place.directory / "kafka", place.settings.kafka.bootstrap.rpartition(":")[2]
        again = f"{us} local kafka start --data-dir {shlex.quote(str(data))} --port {port}"
        commands.insert(0, (again, "its Kafka, with its data"))
    return commands


def _where(place: Workplace) -> str:
    """The options that lead a command to what was kept."""
    if place.kafka is not None:
        return f"--config {shlex.quote(str(place.config))}"
    names = ("topics.prefix", "topics.partitions", "topics.work_partitions", "view.url")
    flags = {name: place.shared.flags[name] for name in names}
    given = place.shared.flags.get("kafka.bootstrap")
    options = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in flags.items()]
    config = [f"--config {shlex.quote(str(place.shared.config))}"] if place.shared.config is not None else []
    return " ".join([*config, *([f"--bootstrap {given}"] if given is not None else []), *options])


def _our_name() -> str:
    """How the reader can call us from where he is."""
    program = Path(sys.argv[0]).absolute()
    found = shutil.which("mainspring")
    if program.name != "mainspring" or (found is not None and Path(found).absolute() == program):
        return "mainspring"
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else str(program)
