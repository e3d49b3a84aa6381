"""The entry point: run a command, turn what goes wrong into words and an exit code."""

import os
import sys
from typing import NoReturn

from mainspring.cli.errors import CliError, ExitCode, as_cli_error

__all__ = ["main", "run"]


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command in this process; returns the exit code. Data is on stdout, all else on stderr."""
    try:
        # Inside: importing takes long enough for a Ctrl-C.
        from mainspring.cli.app import build
        from mainspring.cli.context import hoist

        build()(args=hoist(arguments), prog_name="mainspring")
    except SystemExit as exit_:
        return _code(exit_)
    except BrokenPipeError:
        # The reader has gone (`| head`). Point stdout elsewhere, or the interpreter complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except BaseException as error:
        known = as_cli_error(error)
        if known is None:
            raise
        return _fail(known)
    return int(ExitCode.OK)


def _fail(error: CliError) -> int:
    from mainspring.cli.output import print_error

    print_error(error)
    return int(error.code)


def _code(exit_: SystemExit) -> int:
    if exit_.code is None:
        return int(ExitCode.OK)
    return exit_.code if isinstance(exit_.code, int) else int(ExitCode.FAILURE)
