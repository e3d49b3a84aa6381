"""What stops the demo before its end."""

from mainspring.cli.errors import CliError

__all__ = ["DemoError"]


class DemoError(CliError):
    """The demo cannot go on: what, why, and what to look at."""
