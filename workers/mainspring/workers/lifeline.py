"""Children that die with their parent, also when it is killed and however busy they are."""

import ctypes
import os
import signal
import sys

__all__ = ["bind_to_parent"]

_PR_SET_PDEATHSIG = 1


def bind_to_parent(parent_pid: int) -> None:
    """Makes the kernel kill this process when its parent dies (Linux; elsewhere the closed socket tells).

    The kernel means the *thread* that started this process, so that must be one which lives as long as the parent needs
    its children. Exits at once if the parent is gone already.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:
        os._exit(1)
