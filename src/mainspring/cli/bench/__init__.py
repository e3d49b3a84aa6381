"""`mainspring bench`: what an installation does on this machine, beside what the broker gives to bare clients."""

from mainspring.cli.bench.commands import app

__all__ = ["app"]
