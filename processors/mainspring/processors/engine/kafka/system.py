"""The machine's clocks and randomness."""

import os
import time

__all__ = ["SystemClock", "SystemRandomness"]


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def pause(self, delay_ms: int) -> None:
        time.sleep(delay_ms / 1_000)


class SystemRandomness:
    """The machine's randomness."""

    def bits(self, count: int) -> int:
        return int.from_bytes(os.urandom((count + 7) // 8), "big") & ((1 << count) - 1)
