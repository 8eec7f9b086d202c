"""Which way to make a thing costs least? Rules with needs and products; a cost is a rule's own and all its needs'.

Rules are settled from what is held outward, cheapest first (Knuth's generalisation of Dijkstra's algorithm), so
depth, sharing and circles cost nothing. Nothing here knows tools or plans.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class Rule(NamedTuple):
    """One way to make some names from others."""

    cost: float
    needs: tuple[str, ...]
    makes: tuple[str, ...]


class Lack(NamedTuple):
    """A name that nothing makes, and the names that led to it, wanted one first."""

    name: str
    path: tuple[str, ...]


Ways = dict[str, int]
"""Name -> index of the rule that makes it."""


def cheapest(rules: Sequence[Rule], held: Iterable[str]) -> Ways:
    """The best rule for every name that can be made; of equal ones the first."""
    costs, best = dict.fromkeys(held, 0.0), Ways()
    users, waiting = _users(rules), [set(rule.needs) - costs.keys() for rule in rules]
    heap = [(rule.cost, index) for index, rule in enumerate(rules) if not waiting[index]]
    heap.sort()
    while heap:
        cost, index = heappop(heap)
        for name in rules[index].makes:
            if name in costs:
                continue
            costs[name], best[name] = cost, index
            for user in users.get(name, ()):
                waiting[user].discard(name)
                if not waiting[user]:
                    heappush(heap, (rules[user].cost + sum(costs[each] for each in set(rules[user].needs)), user))
    return best


def selected(rules: Sequence[Rule], best: Ways, held: Collection[str], wants: Iterable[str]) -> tuple[int, ...]:
    """The rules to follow for the wanted names, each once, a rule after those that make its needs.

    A rule that is needed anyway displaces those chosen for its other products, so that nothing is made twice
    where that can be had.
    """
    ways, wants, kept = dict(best), tuple(wants), set[int]()
    while True:
        order = tuple(_ordered(rules, ways, held, wants))
        doubled = next((i for i in order for name in rules[i].makes if ways.get(name, i) != i and i not in kept), None)
        if doubled is None:
            return order
        kept.add(doubled)
        ways |= {name: doubled for name in rules[doubled].makes if name in ways}


def lacking(rules: Sequence[Rule], obtainable: Collection[str], wants: Iterable[str]) -> tuple[Lack, ...]:
    """Every name that no rule makes and that stands in the way of a wanted one."""
    makers = _makers(rules)
    found, visited = [], set[str]()
    stack = [Lack(name, ()) for name in reversed(tuple(wants))]
    while stack:
        name, path = stack.pop()
        if name in obtainable or name in visited:
            continue
        visited.add(name)
        if name not in makers:
            found.append(Lack(name, path))
        needs = [each for index in makers.get(name, ()) for each in rules[index].needs]
        stack += [Lack(each, (*path, name)) for each in reversed(needs)]
    return tuple(found)


def circle(rules: Sequence[Rule], obtainable: Collection[str], start: str) -> tuple[str, ...]:
    """Names that need each other, the first repeated at the end; for a start that lacks nothing and is not made."""
    makers, path = _makers(rules), [start]
    while True:
        needs = rules[makers[path[-1]][0]].needs
        following = next(each for each in needs if each not in obtainable)
        if following in path:
            return (*path[path.index(following) :], following)
        path.append(following)


def _ordered(rules: Sequence[Rule], ways: Ways, held: Collection[str], wants: Iterable[str]) -> Iterator[int]:
    """Depth first without recursion: plans may be thousands of steps deep."""
    entered = set[int]()
    stack: list[tuple[int | None, Iterator[str]]] = [(None, iter(wants))]
    while stack:
        index, needs = stack[-1]
        following = next((ways[each] for each in needs if each not in held and ways[each] not in entered), None)
        if following is not None:
            entered.add(following)
            stack.append((following, iter(rules[following].needs)))
            continue
        stack.pop()
        if index is not None:
            yield index


def _users(rules: Sequence[Rule]) -> Mapping[str, list[int]]:
    users: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        for name in set(rule.needs):
            users.setdefault(name, []).append(index)
    return users


def _makers(rules: Sequence[Rule]) -> Mapping[str, list[int]]:
    makers: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        for name in rule.makes:
            makers.setdefault(name, []).append(index)
    return makers
