"""Where the `log` commands read: the cluster of the settings, or an exported file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mainspring.cli.connect import reach
from mainspring.cli.errors import CliError, ExitCode

if TYPE_CHECKING:
    from mainspring.log import KafkaLog, LogSource
    from mainspring.settings import Settings
    from mainspring.topics import Topic, Topology

__all__ = ["FileOption", "TopicOption", "live_log", "log_of", "topics_of"]

FileOption = Annotated[
    Path | None, typer.Option("--file", help="Read an export instead of the cluster.", metavar="FILE", exists=True)
]
TopicOption = Annotated[
    list[str] | None,
    typer.Option(help="A topic by its name without the prefix, such as commands; may be repeated.", metavar="NAME"),
]


@contextmanager
def live_log(settings: "Settings") -> Iterator["KafkaLog"]:
    """The log of the cluster."""
    from mainspring.log import KafkaLog

    with KafkaLog(reach(settings), settings.topology()) as log:
        yield log


@contextmanager
def log_of(settings: "Settings", file: Path | None) -> Iterator["LogSource"]:
    """The log of the cluster, or the one in the file."""
    from mainspring.log import ExportedLog

    if file is not None:
        yield ExportedLog(file)
        return
    with live_log(settings) as log:
        yield log


def topics_of(topology: "Topology", names: list[str] | None) -> "list[Topic] | None":
    """The topics that were named, with or without the prefix; None when none was."""
    if not names:
        return None
    known = {topic.role: topic for topic in topology.all()} | {topic.name: topic for topic in topology.all()}
    unknown = [name for name in names if name not in known]
    if unknown:
        roles = ", ".join(topic.role for topic in topology.all())
        raise CliError(f"There is no topic {unknown[0]!r}.", hint=f"There are: {roles}.", code=ExitCode.USAGE)
    return [known[name] for name in names]
