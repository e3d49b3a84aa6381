"""The command line."""

from mainspring.cli.main import main, run

__all__ = ["main", "run"]
