# SPDX-License-Identifier: BSD-3-Clause
"""The stencil of Capra et al. with loops, on a machine that nobody here has: each rank computes its
core in a parallel loop, then waits for the ghost layers, then computes the borders. The simulator
has the version with tasks (`imbrex simulate stencil1d`), and the two have a network in common.

A message is too long to be sent eagerly. Nobody polls while the loop runs, so it goes when both
ranks wait: two latencies, its bytes, and the overheads of the two processors. Each latency has the
noise of the simulator, an exponential distribution. A parallel loop costs `fork_join_s`."""

import dataclasses
import math
import pathlib
import random


@dataclasses.dataclass(frozen=True)
class Network:
    latency_s: float
    overhead_s: float
    byte_s: float
    noise: float


def network_of(path, noise):
    """A file of tools/networks, with a noise of the caller's."""
    found = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("#")[0].partition("=")
        if equals:
            found[name.strip()] = float(value)
    return Network(1e-6 * found["latency_us"], 1e-6 * found["overhead_us"],
                   8e-9 / found["gbit_per_s"], noise)


def loops_s(network, *, ranks, workers, cells, ghost, steps, cell_s, fork_join_s, seed=1):
    """Seconds of all steps, ghost layers of 8-byte cells."""
    draw = random.Random(seed)
    sweep = cell_s / workers
    core = (cells / ranks - 2 * ghost) * sweep + fork_join_s
    border = 2 * ghost * sweep + fork_join_s

    def message_s():
        noise = sum(-network.noise * math.log1p(-draw.random()) for _ in range(2))
        return (2 + noise) * network.latency_s + 2 * network.overhead_s + 8 * ghost * network.byte_s

    now = [0.0] * ranks
    for _ in range(steps):
        waits = [begin + core for begin in now]
        now = [max(max(waits[rank], waits[other]) + message_s()
                   for other in ((rank - 1) % ranks, (rank + 1) % ranks)) + border
               for rank in range(ranks)]
    return max(now)
