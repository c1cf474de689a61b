"""What is the whole front between privacy and utility? A parametric flow: all breakpoints in one sweep.

For a price nu of protection, maximise nu P - E. One person of an element of c people, moved to j, is worth

    nu w(c) - 1/c  (only the source knows)   minus   1/x_kj  (only the target knows),

so elements that may go to the same places (`Groups`) are one node, and the problem is a minimum-cost flow from a source
s over groups and places to a sink t; an arc from s for each group and count, with that many people and the cost
1/c - nu w(c); arcs from groups to places of cost 1/x_kj; arcs from places to t with their capacities; and a return from
t to s. At nu = 0 nobody moves. As nu grows, a flow stays optimal until a residual cycle would have negative cost.

*Which cycle is next.* All costs with nu are on arcs at s, so such a cycle passes s once: it begins with one more person
of some group and count c, then walks group - place - group - ..., taking others' places, and comes back either from
t (a place with room: nu w(c) = 1/c + d) or by leaving a person of another count c' where they are (their protection
is given up: nu (w(c) - w(c')) = 1/c - 1/c' + d). The length d of the walk does not depend on nu, so the next breakpoint
is the least nu of these, and flow along that walk traces the front up to the next one. Cycles with w(c) < w(c') get
dearer as nu grows and never come up. When none with w(c) > w(c') is left, P is at its maximum, with the least noise.

*Which places matter.* Let j have room. A walk that enters j may stop there; going on from j would pay only if a cycle
from j had negative cost, which an optimal flow does not have, and none gets one as nu grows before the breakpoint. So a
walk turns only at full places and ends at the first place with room. Loads never fall: a place in the middle of a walk
gives and takes the same. So the cheapest place with room of each group is a pointer that moves one way, and the walk is
a shortest path among groups (28 rows), whatever the number of places.

*Any weight will do.* Counts of one row, too, change places with each other where weights want it (a walk of length 0).
With inverse super-linear weights they never do. Let c < c' and c w(c) > c' w(c'). If moving people of c' is worth
anything, nu > 1/(c' w(c')) > 1/(c w(c)), and there nu (w(c) - w(c')) > 1/c - 1/c': those of c are worth more, and have
gone first. A sort, or a greedy fill without the walks, is wrong as soon as a capacity binds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from glasshouse.errors import GlasshouseBug
from glasshouse.protection.relocation.rules import Floats, Groups, Ints, Matrix, Rules

TINY = 1e-11  # people: less than this is nobody, and due to rounding
HOP = 1e-13  # added for each turn of a walk: of walks of equal cost the shorter one, and no walk in circles


@dataclass(frozen=True, eq=False)
class Sweep:
    """The front as it was traced: steps, each moving so many people along one walk at one price nu."""

    groups: Groups
    price: Floats  # nu of each step, never falling
    amount: Floats  # people
    noise: Floats  # E that one person adds
    start: Ints  # group and kind of count whose people move
    kind: Ints
    end: Ints  # group and kind of count whose people stay again; -1 where a place with room was found
    end_kind: Ints
    first: Ints  # arcs of step s: first[s]:first[s + 1]
    arc_group: Ints
    arc_place: Ints
    arc_sign: Ints

    @property
    def gain(self) -> Floats:
        """P that one person adds in each step."""
        given_up = np.where(self.end >= 0, self.groups.weight[self.end_kind], 0.0) if len(self.end) else 0.0
        return np.asarray(self.groups.weight[self.kind] - given_up)

    def flow(self, steps: int, rest: float) -> tuple[Floats, Floats]:
        """The flow after so many steps and a share `rest` of the next: groups x places, and groups x counts moved."""
        amount = self.amount[: steps + 1].copy()
        if steps < len(self.amount):
            amount[steps] *= rest
        last = self.first[len(amount)]
        along = np.repeat(amount, np.diff(self.first[: len(amount) + 1]))
        flow, moved = np.zeros(self.groups.cost.shape), np.zeros(self.groups.supply.shape)
        np.add.at(flow, (self.arc_group[:last], self.arc_place[:last]), along * self.arc_sign[:last])
        np.add.at(moved, (self.start[: len(amount)], self.kind[: len(amount)]), amount)
        back = np.flatnonzero(self.end[: len(amount)] >= 0)
        np.subtract.at(moved, (self.end[back], self.end_kind[back]), amount[back])
        flow[flow < TINY] = 0
        moved[moved < TINY] = 0
        return flow, moved


def sweep(matrix: Matrix, rules: Rules, groups: Groups) -> Sweep:
    """Trace the front from nobody moved to the most protection."""
    order = np.argsort(groups.cost, axis=1, kind="stable").astype(np.int32)
    covered = np.isfinite(groups.cost).sum(axis=1)
    own = np.full(groups.cost.shape, np.inf) if groups.own_count.any() else np.full((1, 1), np.inf)
    if groups.own_count.any():
        own = groups.limits(matrix)
    most = 1000 * (groups.cost.shape[1] + groups.supply.size) + 1000
    prices, amounts, noises, ints, first, arcs = _sweep(
        groups.cost, order, covered, own, groups.supply, groups.weight, 1.0 / groups.counts, rules.capacity, most
    )
    if len(prices) >= most:
        raise GlasshouseBug("the flow of a relocation does not come to an end; please report the matrix's size")
    return Sweep(
        groups, np.maximum.accumulate(prices), amounts, noises, ints[:, 0], ints[:, 1], ints[:, 2], ints[:, 3],
        first, arcs[:, 0], arcs[:, 1], arcs[:, 2],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _free(flow, own, group, place):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """How many more people of a group a place can take, capacities apart."""
    if own.shape[0] == 1 and own.shape[1] == 1 and flow.size != 1:
        return np.inf
    return own[group, place] - flow[group, place]


@njit(cache=True, nogil=True)
def _scan(cost, flow, own, full, fulls, one, other, link, via):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The cheapest full place where group `one` can take the place of `other`, from scratch."""
    link[other, one], via[other, one] = np.inf, -1
    for at in range(fulls):
        place = full[at]
        if flow[other, place] > 0:
            price = cost[one, place] - cost[other, place]
            if price < link[other, one] and _free(flow, own, one, place) > TINY:
                link[other, one], via[other, one] = price, place


@njit(cache=True, nogil=True)
def _renew(cost, flow, own, full, fulls, group, place, link, via):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Set links right after the flow of a group to a full place has changed."""
    for other in range(len(cost)):
        if other == group:
            continue
        if flow[group, place] > 0:  # others may take this group's place
            price = cost[other, place] - cost[group, place]
            if price < link[group, other] and _free(flow, own, other, place) > TINY:
                link[group, other], via[group, other] = price, place
        elif via[group, other] == place:
            _scan(cost, flow, own, full, fulls, other, group, link, via)
        if flow[other, place] > 0 and _free(flow, own, group, place) > TINY:  # and this group theirs
            price = cost[group, place] - cost[other, place]
            if price < link[other, group]:
                link[other, group], via[other, group] = price, place
        elif via[other, group] == place:
            _scan(cost, flow, own, full, fulls, group, other, link, via)


@njit(cache=True, nogil=True)
def _shortest(link, linked, length, after):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Shortest walks from all groups, given the length of those that end at once; `after` is the next group, or -1.

    `link[a, b]` is the price of b taking a's place; `linked` lists the groups that hold a full place. Bellman and Ford.
    """
    changed = np.ones(len(link), np.bool_)
    for _ in range(len(link)):
        better = False
        for middle in linked:
            rest = length[middle] + HOP
            if rest == np.inf or not changed[middle]:
                continue
            changed[middle] = False
            prices = link[middle]
            for group in range(len(link)):
                if prices[group] + rest < length[group]:
                    length[group] = prices[group] + rest
                    after[group] = middle
                    changed[group] = True
                    better = True
        if not better:
            return


@njit(cache=True, nogil=True)
def _longer(array):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    longer = np.empty((2 * len(array), array.shape[1]), array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def _sweep(cost, order, covered, own, supply, weight, inverse, capacity, most):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    groups, kinds = supply.shape
    flow, moved, room = np.zeros(cost.shape), np.zeros(supply.shape), capacity.copy()
    full, fulls = np.empty(len(room), np.int64), 0
    link, via = np.full((groups, groups), np.inf), np.full((groups, groups), -1, np.int32)
    holds = np.zeros(groups, np.bool_)  # has had people in a full place
    pointer = np.zeros(groups, np.int64)
    length, after = np.empty((kinds + 1, groups)), np.empty((kinds + 1, groups), np.int64)
    numbers, ints, steps = np.empty((1024, 3)), np.empty((1024, 5), np.int64), 0
    arcs, used = np.empty((4096, 3), np.int64), 0
    while steps < most:
        for group in range(groups):
            while pointer[group] < covered[group]:
                place = order[group, pointer[group]]
                if room[place] > TINY and _free(flow, own, group, place) > TINY:
                    break
                pointer[group] += 1
        linked = np.flatnonzero(holds)
        heaviest = -1.0  # of the people who could still move
        for kind in range(kinds):
            for group in range(groups):
                if supply[group, kind] - moved[group, kind] > TINY:
                    heaviest = max(heaviest, weight[kind])
                    break
        price, start, start_kind, target = np.inf, -1, -1, -1
        for end in range(kinds + 1):  # the last: a place with room; before: people of a count who stay again
            lighter = 0.0 if end == kinds else weight[end]
            if heaviest <= lighter * (1 + 1e-12):
                continue
            some = False
            for group in range(groups):
                after[end, group], length[end, group] = -1, np.inf
                if end < kinds:
                    if moved[group, end] > TINY:
                        length[end, group] = 0.0
                elif pointer[group] < covered[group]:
                    length[end, group] = cost[group, order[group, pointer[group]]]
                some |= length[end, group] < np.inf
            if not some:
                continue
            if len(linked):
                _shortest(link, linked, length[end], after[end])
            for kind in range(kinds):
                gain = weight[kind] - lighter
                if gain <= 1e-12 * weight[kind]:
                    continue
                noise = inverse[kind] - (0.0 if end == kinds else inverse[end])
                for group in range(groups):
                    if supply[group, kind] - moved[group, kind] > TINY:
                        candidate = (noise + length[end, group]) / gain
                        if candidate < price:
                            price, start, start_kind, target = candidate, group, kind, end
        if start < 0:
            break
        # the walk, and how many people can take it
        amount = supply[start, start_kind] - moved[start, start_kind]
        noise = inverse[start_kind]
        begin, group = used, start
        for _ in range(groups + 1):
            if used + 2 > len(arcs):
                arcs = _longer(arcs)
            following = after[target, group]
            if following < 0:
                break
            place = via[following, group]
            amount = min(amount, min(flow[following, place], _free(flow, own, group, place)))
            noise += cost[group, place] - cost[following, place]
            arcs[used, 0], arcs[used, 1], arcs[used, 2] = group, place, 1
            arcs[used + 1, 0], arcs[used + 1, 1], arcs[used + 1, 2] = following, place, -1
            used += 2
            group = following
        if after[target, group] >= 0:  # a circle, which positive lengths rule out
            steps = most
            break
        if target == kinds:
            place = order[group, pointer[group]]
            amount = min(amount, min(room[place], _free(flow, own, group, place)))
            noise += cost[group, place]
            arcs[used, 0], arcs[used, 1], arcs[used, 2] = group, place, 1
            used += 1
            room[place] -= amount
        else:
            amount = min(amount, moved[group, target])
            noise -= inverse[target]
            moved[group, target] -= amount
        moved[start, start_kind] += amount
        for at in range(begin, used):
            one, place = arcs[at, 0], arcs[at, 1]
            flow[one, place] += arcs[at, 2] * amount
            if flow[one, place] < TINY:
                flow[one, place] = 0.0
        if target == kinds and room[place] <= TINY:
            room[place] = 0.0
            full[fulls] = place
            fulls += 1
            for other in range(groups):
                if flow[other, place] > 0:
                    holds[other] = True
                    _renew(cost, flow, own, full, fulls, other, place, link, via)
        for at in range(begin, used):
            if room[arcs[at, 1]] <= TINY:
                holds[arcs[at, 0]] = True
                _renew(cost, flow, own, full, fulls, arcs[at, 0], arcs[at, 1], link, via)
        if steps == len(numbers):
            numbers, ints = _longer(numbers), _longer(ints)
        numbers[steps, 0], numbers[steps, 1], numbers[steps, 2] = price, amount, noise
        ints[steps, 0], ints[steps, 1] = start, start_kind
        ints[steps, 2], ints[steps, 3] = (-1, 0) if target == kinds else (group, target)
        ints[steps, 4] = begin
        steps += 1
    if steps == most:
        return np.empty(most), np.empty(0), np.empty(0), ints, np.empty(0, np.int64), arcs
    first = np.append(ints[:steps, 4], used)
    return numbers[:steps, 0], numbers[:steps, 1], numbers[:steps, 2], ints[:steps], first, arcs[:used]
