"""Recurring schedules: `client.schedules`, and what their definitions are made of."""

from mainspring.client.schedules.awaiting import AsyncSchedules
from mainspring.client.schedules.blocking import Schedules
from mainspring.client.schedules.definition import Change, Policies
from mainspring.client.schedules.info import (
    AcceptedBackfill,
    AcceptedChange,
    Declaration,
    DeclareOutcome,
    PlannedUpdate,
    ScheduleEntry,
    ScheduleFilters,
    ScheduleInfo,
)
from mainspring.client.schedules.rules import Cron, Every, When

__all__ = [
    "AcceptedBackfill",
    "AcceptedChange",
    "AsyncSchedules",
    "Change",
    "Cron",
    "Declaration",
    "DeclareOutcome",
    "Every",
    "PlannedUpdate",
    "Policies",
    "ScheduleEntry",
    "ScheduleFilters",
    "ScheduleInfo",
    "Schedules",
    "When",
]
