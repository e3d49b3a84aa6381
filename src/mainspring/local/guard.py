"""Become another program that dies with its parent: `python guard.py PARENT PROGRAM ARGUMENT…`.

It runs as a program of its own, before `exec`, because code run between fork and exec of a process with threads (every
Kafka client has some) may deadlock. Where the kernel has no such signal (macOS) the program just runs.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ask for SIGKILL at the parent's death, then replace this process by the program; it returns only by raising."""
    parent, program = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            # It died before the kernel was asked: nobody would ever end the program.
            sys.exit(1)
    os.execv(program[0], program)  # noqa: S606 - becoming another program is what it is for


if __name__ == "__main__":
    main(sys.argv[1:])
