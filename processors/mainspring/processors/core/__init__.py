"""The rules, pure: no I/O, no clock, no randomness."""

from mainspring.processors.core.dispatcher import QueueStats
from mainspring.processors.core.errors import CoreError, IllegalTransitionError
from mainspring.processors.core.explain import WhyNot
from mainspring.processors.core.index.entries import LAYOUT, in_flight_in
from mainspring.processors.core.index.orders import QueueOrder
from mainspring.processors.core.indexes import WINDOW_JOBS
from mainspring.processors.core.instants import Now, Wake
from mainspring.processors.core.output import Offer, Output
from mainspring.processors.core.partition import PartitionCore
from mainspring.processors.core.ports import IndexRow, IndexStore, IsOver, Rows
from mainspring.processors.core.rules import QueueRules, Rules
from mainspring.processors.core.strategies import (
    AgingPriorityStrategy,
    EarliestDeadlineFirstStrategy,
    FIFOStrategy,
    PriorityStrategy,
    SchedulingStrategy,
)

__all__ = [
    "LAYOUT",
    "WINDOW_JOBS",
    "AgingPriorityStrategy",
    "CoreError",
    "EarliestDeadlineFirstStrategy",
    "FIFOStrategy",
    "IllegalTransitionError",
    "IndexRow",
    "IndexStore",
    "IsOver",
    "Now",
    "Offer",
    "Output",
    "PartitionCore",
    "PriorityStrategy",
    "QueueOrder",
    "QueueRules",
    "QueueStats",
    "Rows",
    "Rules",
    "SchedulingStrategy",
    "Wake",
    "WhyNot",
    "in_flight_in",
]
