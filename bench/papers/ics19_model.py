#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A model of programs that compute, exchange all to all, and compute again: how much less time than
with a blocking collective each way of partial collectives can take, from the time of computing
before and after and of communication, the number of ranks and the number of parts.
bench/papers/ics19 takes these times from a measured run and prints what the model gives beside what
is measured.

All ranks do the same at the same times, so one is simulated: its core runs what is ready, earlier
stages first; its link carries messages one after the other, and what leaves at a time stands for
what arrives at that time. Nothing else takes time: so it gives the most that a way can take, and
too much by some per cent where ranks share cores and computing takes as long as communication, or
longer. The ways:

  RB  the receiver computes on the block of a rank when it is here; the last steps of each line
      (`joined`: in a Fourier transform the butterflies) need all blocks. The paper's scheme.
  RL  the receiver computes groups of whole lines, as they arrive, in their order.
  ST  chunks leave as they are computed, for the first lines first; whole lines are computed."""

import argparse
import dataclasses
import heapq
import json
import math

SCHEMES = ("RB", "RL", "ST")


@dataclasses.dataclass(frozen=True)
class Program:
    """Computing in stages, with an exchange after each but the last."""
    compute_s: tuple     # of each stage
    exchange_s: tuple    # of each exchange, alone on the link
    ranks: tuple         # that take part in each
    parts: int = 16      # groups of lines, and chunks of what is computed before
    joined: float = 0.0  # share of a stage after an exchange that needs all blocks of a line
    # True if a piece of a chunk can be computed on by itself, as in MapReduce.
    pieces: bool = False
    # True for each exchange after which a group of lines needs only its own chunk before it.
    by_planes: tuple = ()

    @property
    def blocking_s(self):
        return sum(self.compute_s) + sum(self.exchange_s)


def joined_of(points, ranks):
    """Of a line of so many points: the butterflies over ranks, and a pass over what is there."""
    return min(1.0, (1 + math.log2(ranks)) / math.log2(points))


def fft_2d(before_s, after_s, exchange_s, ranks, points=4096, parts=16):
    return Program((before_s, after_s), (exchange_s,), (ranks,), parts, joined_of(points, ranks))


def fft_3d(compute_s, exchange_s, grid, points=256, parts=16):
    """Lines in x, y and z; the first exchange stays in a plane, the second does not."""
    return Program(tuple(compute_s), tuple(exchange_s), tuple(grid), parts,
                   joined_of(points, max(grid)), by_planes=(True, False))


def map_reduce(map_s, reduce_s, exchange_s, ranks, parts=16):
    return Program((map_s, reduce_s), (exchange_s,), (ranks,), parts, pieces=True)


def bound_s(program):
    """No order of tasks and messages takes less: either the core always works, or the link from
    the first chunk until what the last message is for: a piece; or a group of lines, or the
    block of a rank, whichever is less."""
    ranks, parts = program.ranks[-1], program.parts
    if program.pieces:
        last = 1 / ranks / parts
    else:
        last = min(1 / parts, (1 - program.joined) / ranks + program.joined)
    return max(sum(program.compute_s), program.compute_s[0] / parts + sum(program.exchange_s) +
               last * program.compute_s[-1])


class Simulation:
    """Things are tasks, on the core, and messages, on the link; each begins when what it waits for
    has ended, and of those that may, the one with the least order first."""

    def __init__(self):
        self.things = {}    # name -> (place, seconds, order)
        self.waits = {}     # name -> for how many others
        self.followers = {}

    def add(self, name, place, seconds, after):
        self.things[name] = (place, seconds, name[1:])
        self.waits[name] = len(after)
        for other in after:
            self.followers.setdefault(other, []).append(name)

    def run(self):
        """The time at which all has ended."""
        ready = {"core": [], "link": []}
        busy, events, now = set(), [], 0.0
        for name, count in self.waits.items():
            if count == 0:
                self.make_ready(ready, name)
        while True:
            for place, queue in ready.items():
                if queue and place not in busy:
                    _, name = heapq.heappop(queue)
                    busy.add(place)
                    heapq.heappush(events, (now + self.things[name][1], place, name))
            if not events:
                break
            now, place, name = heapq.heappop(events)
            busy.discard(place)
            for follower in self.followers.get(name, ()):
                self.waits[follower] -= 1
                if self.waits[follower] == 0:
                    self.make_ready(ready, follower)
        if any(self.waits.values()):
            raise ValueError("a thing waits for one that never was")
        return now

    def make_ready(self, ready, name):
        place, _, order = self.things[name]
        heapq.heappush(ready[place], (order, name))


class Builder:
    """Names are (kind, stage, ...): what follows the kind is the order."""

    def __init__(self, program, scheme):
        self.program, self.scheme = program, scheme
        self.simulation = Simulation()

    def build(self):
        program = self.program
        parts = range(program.parts)
        tasks = [self.task(0, (part,), 1 / program.parts, ()) for part in parts]
        for stage in range(1, len(program.compute_s)):
            tasks = self.stage(stage, tasks)
        return self.simulation

    def task(self, stage, order, share, after):
        name = ("task", stage, *order)
        self.simulation.add(name, "core", share * self.program.compute_s[stage], after)
        return name

    def message(self, stage, order, share, after):
        """`share`: of all that leaves this rank for others in the exchange before `stage`."""
        name = ("message", stage, *order)
        self.simulation.add(name, "link", share * self.program.exchange_s[stage - 1], after)
        return name

    def stage(self, stage, before):
        """`before`: the tasks of the stage before, in the order of chunks. The same of this one."""
        if self.scheme == "RL":
            return self.lines(stage, before)
        if self.scheme == "ST" and not self.program.pieces:
            return self.tiles(stage, before)
        if self.scheme == "ST":
            return self.streamed(stage, before)
        return self.blocks(stage, before)

    def blocks(self, stage, before):
        ranks = self.program.ranks[stage - 1]
        others = range(1, ranks)
        share = (1 - self.program.joined) / ranks
        done = [self.task(stage, (0, 0), share, before)]
        done += [self.task(stage, (0, other), share,
                           (self.message(stage, (0, other), 1 / (ranks - 1), before), *before))
                 for other in others]
        # The last steps, by groups of lines, so that the next stage has chunks.
        parts = self.program.parts
        return [self.task(stage, (1, part), self.program.joined / parts, done)
                for part in range(parts)]

    def lines(self, stage, before):
        others = range(1, self.program.ranks[stage - 1])
        parts = self.program.parts
        return [self.task(stage, (part,), 1 / parts, (*before, *(
            self.message(stage, (part, other), 1 / len(others) / parts, before)
            for other in others))) for part in range(parts)]

    def tiles(self, stage, before):
        others = range(1, self.program.ranks[stage - 1])
        parts = self.program.parts
        by_planes = self.program.by_planes and self.program.by_planes[stage - 1]
        tasks = []
        for part in range(parts):
            chunks = [part] if by_planes else range(len(before))
            share = 1 / len(others) / parts / len(chunks)
            messages = [self.message(stage, (part, chunk, other), share, (before[chunk],))
                        for chunk in chunks for other in others]
            tasks.append(self.task(stage, (part,), 1 / parts,
                                   (*messages, *(before[chunk] for chunk in chunks))))
        return tasks

    def streamed(self, stage, before):
        ranks = self.program.ranks[stage - 1]
        share = 1 / ranks / len(before)
        tasks = []
        for chunk, task in enumerate(before):
            tasks.append(self.task(stage, (chunk, 0), share, (task,)))
            for other in range(1, ranks):
                message = self.message(stage, (chunk, other), 1 / (ranks - 1) / len(before),
                                       (task,))
                tasks.append(self.task(stage, (chunk, other), share, (message,)))
        return tasks


def seconds(program, scheme):
    if scheme not in SCHEMES:
        raise ValueError(f"there is no scheme {scheme}: one of {', '.join(SCHEMES)}")
    return Builder(program, scheme).build().run()


def saved(program, scheme):
    """Per cent less time than blocking."""
    return 100 * (1 - seconds(program, scheme) / program.blocking_s)


def bound(program):
    return 100 * (1 - bound_s(program) / program.blocking_s)


def hidden(share):
    """Returns the per cent by which a blocking program takes longer than a program that hides all
    of its share of time in MPI, with one worker: t_blocking / t - 1."""
    return 100 * share / (1 - share) if share < 1 else math.inf


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=("fft2d", "fft3d", "mapreduce"),
                        help="the program to model")
    parser.add_argument("--ranks", type=int, default=2,
                        help="number of ranks, for fft3d a square number (default 2)")
    parser.add_argument("--before", type=float, default=0.5, metavar="S",
                        help="seconds of computing before the first exchange (default 0.5)")
    parser.add_argument("--after", type=float, default=0.5, metavar="S",
                        help="seconds of computing after each exchange (default 0.5)")
    parser.add_argument("--exchange", type=float, default=1, metavar="S",
                        help="seconds of each exchange alone (default 1)")
    parser.add_argument("--parts", type=int, default=16,
                        help="parts of an exchange (default 16)")
    parser.add_argument("--points", type=int, default=4096, help="points of a line (default 4096)")
    arguments = parser.parse_args()
    if arguments.ranks < 2 or arguments.parts < 1 or arguments.points < 2:
        parser.error("at least 2 --ranks, 1 of --parts, 2 --points")
    before, after, exchange = arguments.before, arguments.after, arguments.exchange
    if min(before, after, exchange) < 0 or before + after + exchange == 0:
        parser.error("times are not negative, and not all of them are 0")
    if arguments.program == "fft2d":
        program = fft_2d(before, after, exchange, arguments.ranks, arguments.points,
                         arguments.parts)
    elif arguments.program == "fft3d":
        side = math.isqrt(arguments.ranks)
        if side * side != arguments.ranks or side < 2:
            parser.error("--ranks of fft3d: 4, 9, 16, ...")
        program = fft_3d((before, after, after), (exchange, exchange), (side, side),
                         arguments.points, arguments.parts)
    else:
        program = map_reduce(before, after, exchange, arguments.ranks, arguments.parts)
    print(json.dumps({"blocking_s": program.blocking_s, "bound_percent": round(bound(program), 1),
                      **{scheme: round(saved(program, scheme), 1) for scheme in SCHEMES}}))


if __name__ == "__main__":
    main()
