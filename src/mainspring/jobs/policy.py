"""How long to wait before an attempt is repeated."""

import math
import random
from dataclasses import dataclass

__all__ = ["RetryPolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential back-off: n retries are n + 1 attempts. Delays are seconds.

    The cap of the delay after attempt k is `min(max_delay, base_delay * 2**(k - 1))`; with `jitter` the delay is drawn
    uniformly between 0 and the cap ("full jitter"), so that jobs that failed together do not come back together.
    """

    max_retries: int = 3
    base_delay: float = 1.0
    max_delay: float = 60.0
    jitter: bool = True

    def __post_init__(self) -> None:
        retries: object = self.max_retries  # as an untyped caller may give it
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ValueError(f"max_retries must be a whole number from 0, not {retries!r}")
        for name in ("base_delay", "max_delay"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a finite number of seconds from 0, not {value!r}")

    def cap(self, attempt: int) -> float:
        """Longest delay after the given attempt (from 1), in seconds; defined for every attempt number."""
        if attempt < 1:
            raise ValueError(f"attempts are counted from 1, not {attempt}")
        try:
            grown = math.ldexp(self.base_delay, attempt - 1)
        except OverflowError:
            return self.max_delay
        return min(self.max_delay, grown)

    def delay(self, attempt: int, rng: random.Random) -> float:
        """Delay after the given attempt, in seconds."""
        cap = self.cap(attempt)
        return rng.uniform(0.0, cap) if self.jitter else cap
