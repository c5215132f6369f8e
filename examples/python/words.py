# SPDX-License-Identifier: BSD-3-Clause
"""Counts words: rank 0 hands out lines, the others count, several lines at a time."""
import asyncio
from collections import Counter

from imbrex import aio
from mpi4py import MPI

TEXT = ["the quick brown fox", "jumps over the lazy dog", "the end"] * 100
LINE, COUNT = 1, 2


async def hand_out(comm: aio.Comm) -> Counter[str]:
    async def collect() -> Counter[str]:
        total: Counter[str] = Counter()
        for _ in TEXT:
            total += await comm.recv(tag=COUNT)
        return total

    collecting = asyncio.create_task(collect())
    for i, line in enumerate(TEXT):
        await comm.send(line, dest=1 + i % (comm.size - 1), tag=LINE)
    for worker in range(1, comm.size):
        await comm.send(None, worker, LINE)
    return await collecting


async def count(comm: aio.Comm) -> None:
    async for line in comm.messages(source=0, tag=LINE):
        if line is None:
            return
        await comm.send(Counter(line.split()), dest=0, tag=COUNT)


async def main() -> None:
    comm = aio.wrap(MPI.COMM_WORLD)
    if comm.rank == 0:
        print((await hand_out(comm)).most_common(2))
    else:
        await count(comm)


asyncio.run(main())
