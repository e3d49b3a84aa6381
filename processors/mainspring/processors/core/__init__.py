"""The rules, pure: no I/O, no clock, no randomness."""

from mainspring.processors.core.dispatcher import QueueStats
from mainspring.processors.core.errors import CoreError, IllegalTransitionError
from mainspring.processors.core.explain import WhyNot
from mainspring.processors.core.instants import Now, Wake
from mainspring.processors.core.output import Offer, Output
from mainspring.processors.core.partition import PartitionCore
from mainspring.processors.core.ports import Rows
from mainspring.processors.core.rules import QueueRules, Rules
from mainspring.processors.core.strategies import (
    AgingPriorityStrategy,
    EarliestDeadlineFirstStrategy,
    FIFOStrategy,
    PriorityStrategy,
    SchedulingStrategy,
)

__all__ = [
    "AgingPriorityStrategy",
    "CoreError",
    "EarliestDeadlineFirstStrategy",
    "FIFOStrategy",
    "IllegalTransitionError",
    "Now",
    "Offer",
    "Output",
    "PartitionCore",
    "PriorityStrategy",
    "QueueRules",
    "QueueStats",
    "Rows",
    "Rules",
    "SchedulingStrategy",
    "Wake",
    "WhyNot",
]
