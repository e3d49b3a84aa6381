"""How the leader of a group shares out partitions: sticky, balanced, cooperative (nothing moves before it is free)."""

from collections.abc import Mapping, Sequence

from mainspring.processors.engine.ports import Place
from tests.sim.kafka.groups import MemberView

__all__ = ["assign"]


def assign(members: Sequence[MemberView], partitions: Mapping[str, int]) -> dict[str, frozenset[Place]]:
    """By member, what it is to have. A partition that must move is withheld until its owner has let it go.

    All members subscribe to the same topics. `partitions`: how many each topic has.
    """
    places = [(topic, number) for topic in members[0].topics for number in range(partitions[topic])]
    held: dict[Place, str] = {}
    for member in members:
        for place in member.owned:
            # Two that claim the same: one of them is mistaken, and the first keeps it.
            held.setdefault(place, member.member_id)
    target: dict[str, list[Place]] = {member.member_id: [] for member in members}
    free: list[Place] = []
    for place in places:
        owner = held.get(place)
        if owner is None:
            free.append(place)
        else:
            target[owner].append(place)
    _fill(target, free)
    _level(target)
    return {
        member_id: frozenset(place for place in mine if held.get(place, member_id) == member_id)
        for member_id, mine in target.items()
    }


def _fill(target: dict[str, list[Place]], free: Sequence[Place]) -> None:
    for place in free:
        min(target.values(), key=len).append(place)


def _level(target: dict[str, list[Place]]) -> None:
    while True:
        most, least = max(target.values(), key=len), min(target.values(), key=len)
        if len(most) - len(least) < 2:
            return
        least.append(most.pop())
