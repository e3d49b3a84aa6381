"""A record without a broker."""

from dataclasses import dataclass

__all__ = ["FakeRecord"]


@dataclass(frozen=True)
class FakeRecord:
    """A record as it was read."""

    place: tuple[str, int]
    at: int
    size: int = 0

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes | None:
        return b"x" * self.size
