#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A model of the Cholesky factorisation by tasks over ranks that have owners of tiles, and of the
trees by which a tile goes to its readers: for machines that are not available, and to say how
much of a measured gain the trees explain. bench/papers/europar20 compares it with what is measured.

Ranks have workers, which run what is ready in the order of the program (the policy `fifo`), and a
link each, full duplex, whose rate the messages under way share evenly: two to each other rank, in
the order of the program. Nothing else takes time. By `star` the owner of a tile sends it to each
reader; in a `binomial` tree who has it sends it on; in a `chain` every rank sends it on, segment by
segment, while it arrives."""

import argparse
import dataclasses
import heapq
import itertools
import json

SEGMENT = 128 * 1024
UNDER_WAY = 2  # messages from one rank to another
TREES = ("star", "binomial", "chain")


@dataclasses.dataclass(frozen=True)
class Machine:
    rows: int
    columns: int
    workers: int
    bits_s: float        # of a link, in each direction
    tiles: int           # of a side of the matrix
    tile: int            # rows of one
    kernels_s: tuple     # potrf, trsm, syrk, gemm

    @property
    def ranks(self):
        return self.rows * self.columns

    @property
    def copy_s(self):
        return 8 * 8 * self.tile ** 2 / self.bits_s

    @property
    def hop_s(self):
        """Returns how much later than its predecessor a rank of a chain has all: a segment goes to
        the switch, and on."""
        return min(2 * 8 * SEGMENT / self.bits_s, self.copy_s)

    def owner(self, i, j):
        return i % self.rows * self.columns + j % self.columns


def broadcast_s(tree, receivers, size, bits_s):
    """Of one broadcast alone, until the last has all."""
    copy = 8 * size / bits_s
    if tree == "star":
        return receivers * copy
    if tree == "binomial":
        return receivers.bit_length() * copy
    return copy + (receivers - 1) * min(2 * 8 * SEGMENT / bits_s, copy)


def children(tree, ranks):
    """Of one who has the tile and has these to serve: (rank, what that one serves) of each."""
    if tree == "star":
        return [(rank, []) for rank in ranks]
    if tree == "chain":
        return [(ranks[0], ranks[1:])] if ranks else []
    served = []
    while ranks:  # the first child takes the larger half
        half = len(ranks) // 2
        served.append((ranks[half], ranks[half + 1:]))
        ranks = ranks[:half]
    return served


class Flow:
    """A message in flight: how much of it is left, in seconds of a whole link, and its rate."""

    def __init__(self, sender, to, tile, rest, before, left, since):
        self.sender, self.to, self.tile, self.rest, self.before = sender, to, tile, rest, before
        self.left, self.since, self.rate, self.version, self.end = left, since, 0.0, 0, None


class Simulation:
    """The time of one factorisation. Tasks are (step, place in it, kind, i, j)."""

    def __init__(self, machine, tree):
        self.machine, self.tree = machine, tree
        self.ready = [[] for _ in range(machine.ranks)]
        self.free = [machine.workers] * machine.ranks
        self.waits = {}              # task -> what it waits for
        self.waiting = {}            # (from, to) -> messages that are not in flight yet
        self.under_way = {}          # the same -> how many are
        self.leaving = [set() for _ in range(machine.ranks)]   # flows, by sender and receiver
        self.coming = [set() for _ in range(machine.ranks)]
        self.events, self.serial, self.now = [], 0, 0.0
        self.numbers = itertools.count()

    def at(self, time, call, *arguments):
        self.serial += 1
        heapq.heappush(self.events, (time, self.serial, call, arguments))

    def run(self):
        self.make_ready(0, (0, 0, 0, 0, 0))
        while self.events:
            self.now, _, call, arguments = heapq.heappop(self.events)
            call(*arguments)
        return self.now

    # Tasks: kinds are 0 potrf, 1 trsm, 2 syrk, 3 gemm. In a step: the panel, then by columns.
    def task(self, i, j, k):
        if j == k:
            return (k, i - k, 0 if i == k else 1, i, j)
        return (k, (j - k) * self.machine.tiles + i, 2 if i == j else 3, i, j)

    def fulfil(self, rank, task):
        k, kind = task[0], task[2]
        wanted = (0, 1, 1, 2)[kind] + (k > 0)
        left = self.waits.pop(task, wanted) - 1
        if left > 0:
            self.waits[task] = left
        else:
            self.make_ready(rank, task)

    def make_ready(self, rank, task):
        if self.free[rank]:
            self.free[rank] -= 1
            self.start(rank, task)
        else:
            heapq.heappush(self.ready[rank], task)

    def start(self, rank, task):
        self.at(self.now + self.machine.kernels_s[task[2]], self.end, rank, task)

    def end(self, rank, task):
        k, _, kind, i, j = task
        if self.ready[rank]:
            self.start(rank, heapq.heappop(self.ready[rank]))
        else:
            self.free[rank] += 1
        if kind >= 2:  # the tile's next
            self.fulfil(rank, self.task(i, j, k + 1))
            return
        self.arrived(rank, i, k)
        readers = self.readers(i, k)
        # Rotated around the owner, so that no rank is the first of all lists.
        readers.sort(key=lambda other: (other - rank) % self.machine.ranks)
        self.send(rank, (k, i), children(self.tree, readers), None)

    def readers(self, i, k):
        machine, tiles = self.machine, self.machine.tiles
        if i == k:
            found = {machine.owner(m, k) for m in range(k + 1, min(tiles, k + 1 + machine.rows))}
        else:
            found = {machine.owner(i, j) for j in range(k + 1, min(i, k + machine.columns) + 1)}
            found |= {machine.owner(m, i) for m in range(i, min(tiles, i + machine.rows))}
        return list(found - {machine.owner(i, k)})

    def arrived(self, rank, i, k):
        """Tile (i, k) of the factor is on this rank: its readers there."""
        machine = self.machine
        row, column = divmod(rank, machine.columns)
        first_row = lambda low: low + (row - low) % machine.rows  # noqa: E731
        if i == k:
            if column == k % machine.columns:
                for m in range(first_row(k + 1), machine.tiles, machine.rows):
                    self.fulfil(rank, self.task(m, k, k))
            return
        if row == i % machine.rows:
            low = k + 1 + (column - k - 1) % machine.columns
            for j in range(low, i + 1, machine.columns):  # j == i: syrk
                self.fulfil(rank, self.task(i, j, k))
        if column == i % machine.columns:
            for m in range(first_row(i + 1), machine.tiles, machine.rows):
                self.fulfil(rank, self.task(m, i, k))

    # Messages. In a chain `before` is the flow that brings the data to the sender.
    def send(self, rank, tile, served, before):
        for to, rest in served:
            heapq.heappush(self.waiting.setdefault((rank, to), []),
                           (*tile, next(self.numbers), rest, before))
            self.next_message(rank, to)

    def next_message(self, rank, to):
        queue = self.waiting.get((rank, to))
        if not queue or self.under_way.get((rank, to), 0) == UNDER_WAY:
            return
        k, i, _, rest, before = heapq.heappop(queue)
        self.under_way[rank, to] = self.under_way.get((rank, to), 0) + 1
        flow = Flow(rank, to, (k, i), rest, before, self.machine.copy_s, self.now)
        self.leaving[rank].add(flow)
        self.coming[to].add(flow)
        self.share(rank, to)
        if self.tree == "chain" and rest:  # as soon as the first segment is in
            self.at(self.now + self.machine.hop_s, self.send, to, (k, i),
                    children(self.tree, rest), flow)

    def share(self, rank, to):
        for flow in self.leaving[rank] | self.coming[to]:
            flow.left -= (self.now - flow.since) * flow.rate
            flow.since = self.now
            flow.rate = 1 / max(len(self.leaving[flow.sender]), len(self.coming[flow.to]))
            flow.version += 1
            self.at(self.now + max(flow.left, 0) / flow.rate, self.all_left, flow, flow.version)

    def all_left(self, flow, version):
        if version != flow.version:
            return
        before = flow.before
        if before is not None:  # when can the last segment leave?
            soonest = self.machine.hop_s + (self.now if before.end is None else before.end)
            if soonest > self.now:
                self.at(soonest, self.all_left, flow, version)
                return
        flow.end, flow.version = self.now, -1
        self.leaving[flow.sender].discard(flow)
        self.coming[flow.to].discard(flow)
        self.under_way[flow.sender, flow.to] -= 1
        self.share(flow.sender, flow.to)
        self.next_message(flow.sender, flow.to)
        k, i = flow.tile
        self.arrived(flow.to, i, k)
        if self.tree == "binomial":
            self.send(flow.to, flow.tile, children(self.tree, flow.rest), None)


def cholesky_s(machine, tree):
    return Simulation(machine, tree).run()


# The clusters of the paper: cores, the rate of the network, and a core's rate in dgemm, which is
# about 0.8 of the product of its clock and what it does in a cycle.
CLUSTERS = {
    "plafrim, 16 nodes": (4, 4, 32, 100e9, 45e9),
    "inti, 64 nodes": (8, 8, 16, 32e9, 17e9),
    "inti, 100 nodes": (10, 10, 16, 32e9, 17e9),
}


def cluster(name, tiles, tile=320):
    rows, columns, workers, bits_s, flops_s = CLUSTERS[name]
    gemm = 2 * tile ** 3 / flops_s
    return Machine(rows, columns, workers, bits_s, tiles, tile,
                   (gemm / 3, gemm / 2, gemm / 2, gemm))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=int, nargs=2, default=(2, 2), metavar=("ROWS", "COLUMNS"),
                        help="grid of ranks (default 2 2)")
    parser.add_argument("--workers", type=int, default=1, help="workers of a rank (default 1)")
    parser.add_argument("--gbits", type=float, default=1, help="rate of a link (default 1)")
    parser.add_argument("--tiles", type=int, default=32,
                        help="tiles of a side of the matrix (default 32)")
    parser.add_argument("--tile", type=int, default=512, help="rows of a tile (default 512)")
    parser.add_argument("--kernels-us", type=float, nargs=4, default=(1000, 3000, 3000, 6000),
                        metavar="US", help="times of potrf, trsm, syrk, gemm (1000 3000 3000 6000)")
    arguments = parser.parse_args()
    machine = Machine(*arguments.grid, arguments.workers, arguments.gbits * 1e9, arguments.tiles,
                      arguments.tile, tuple(us * 1e-6 for us in arguments.kernels_us))
    print(json.dumps({tree: round(cholesky_s(machine, tree), 3) for tree in TREES}))


if __name__ == "__main__":
    main()
