"""The rules of time: when a schedule fires, checked, computed and put into words. Pure, in absolute time."""

from mainspring.processors.core.timing.checks import check_timing
from mainspring.processors.core.timing.errors import CronError
from mainspring.processors.core.timing.preview import Preview, PreviewMark, preview
from mainspring.processors.core.timing.timing import Occurrence, Occurrences, Timing, occurrence_id
from mainspring.processors.core.timing.zones import UnknownZoneError, tzdata_version, zone_names

__all__ = [
    "CronError",
    "Occurrence",
    "Occurrences",
    "Preview",
    "PreviewMark",
    "Timing",
    "UnknownZoneError",
    "check_timing",
    "occurrence_id",
    "preview",
    "tzdata_version",
    "zone_names",
]
