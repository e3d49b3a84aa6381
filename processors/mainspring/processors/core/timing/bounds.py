"""How many, how long and how far anything about time may be, each with its reason. `checks` has the checks."""

from typing import Final

from mainspring.schemas.bounds import DELAY_MAX_MS

__all__ = [
    "CALENDARS_MAX",
    "CALENDAR_DATES_MAX",
    "CALENDAR_NAME_MAX_CHARS",
    "COMBINED_UNIT_MS",
    "COUNTED_RULE_DAYS_MAX",
    "EXCLUDED_DAYS_MAX",
    "EXCLUDED_SPAN_MAX_MS",
    "EXPRESSION_MAX_CHARS",
    "INTERVAL_MAX_MS",
    "INTERVAL_MIN_MS",
    "JITTER_MAX_MS",
    "RULES_MAX",
    "SEARCH_WORK_MAX",
    "SKIPPED_STRETCHES_MAX",
]

RULES_MAX: Final = 16
"""Rules, and exclusions, of one schedule. Each is asked for every occurrence."""

EXPRESSION_MAX_CHARS: Final = 512
"""Room for a list of every minute and every second."""

INTERVAL_MIN_MS: Final = 100
"""Below, a job's own way through the system takes longer than the interval."""

INTERVAL_MAX_MS: Final = DELAY_MAX_MS
"""Ten years, as for any delay."""

COMBINED_UNIT_MS: Final = 1_000
"""Where an interval is combined with anything else it is a multiple of this, so that what coincides is counted fast."""

JITTER_MAX_MS: Final = 86_400_000
"""A day: more is another schedule."""

CALENDARS_MAX: Final = 16
"""Calendars of one schedule."""

CALENDAR_DATES_MAX: Final = 2_000
"""Dates of one calendar: fifty years of forty holidays. They travel with every version of the schedule."""

CALENDAR_NAME_MAX_CHARS: Final = 128
"""A label, as a tag is."""

EXCLUDED_DAYS_MAX: Final = 1_500
"""Days on which all is excluded that a search passes before it gives up: four years of a daily schedule."""

SEARCH_WORK_MAX: Final = 16_000
"""Days on which all is excluded that a search passes before it gives up, times rules and exclusions: about a tenth of a
second at the worst. A day that has to be worked out, second by second, counts as eight; one that an exclusion takes
whole, or that is like one that was empty, as one."""

COUNTED_RULE_DAYS_MAX: Final = 8_000
"""Days of a range that a command asks for, times rules and exclusions, where intervals are among them and something
else is, too: each day is counted second by second. Half a second at the worst."""

SKIPPED_STRETCHES_MAX: Final = 100
"""Stretches between changes of the clock in which a search for an expression finds only times that do not exist, or
that a rule about gaps and folds leaves out, before it gives up: some thirty years."""

EXCLUDED_SPAN_MAX_MS: Final = 100 * 365 * 86_400_000
"""How far it looks for days that are not excluded: a century of a schedule that has few days."""
