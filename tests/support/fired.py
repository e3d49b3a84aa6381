"""What schedules have fired, written down time by time: the oracle beside the runs that the product keeps."""

from collections.abc import Iterable

__all__ = ["Fired"]


class Fired:
    """What was fired, and what of it is passed over once the clock was set back: written down one by one.

    Between times that a former version fired, the present one may be passed over as well.
    """

    def __init__(self) -> None:
        self.version = 1
        self._by_version: dict[int, set[int]] = {}
        self._ahead: dict[int, set[int]] = {}

    def add(self, version: int, nominal_ms: int) -> None:
        """An occurrence was fired by a version of the definition."""
        self._by_version.setdefault(version, set()).add(nominal_ms)

    def has(self, version: int, nominal_ms: int) -> bool:
        """Whether a version has fired it."""
        return nominal_ms in self._by_version.get(version, ())

    def rewound(self, to_ms: int) -> None:
        """The cursor went back: what was fired behind it is passed over when its time comes again."""
        self._ahead = {version: set(times) for version, times in self._by_version.items() if max(times) > to_ms}

    def open(self, planned: Iterable[int]) -> tuple[list[int], list[int]]:
        """Of planned times those that are surely open, and with them those that may be."""
        times = [each for each in planned if not self._was_fired(each)]
        return [each for each in times if not self._is_between(each)], times

    def _was_fired(self, nominal_ms: int) -> bool:
        return any(nominal_ms in times for times in self._ahead.values())

    def _is_between(self, nominal_ms: int) -> bool:
        former = [times for version, times in self._ahead.items() if version != self.version]
        return any(min(times) < nominal_ms < max(times) for times in former)
