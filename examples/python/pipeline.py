# SPDX-License-Identifier: BSD-3-Clause
"""A pipeline over ranks: each rank works on one item while the next arrives and the last leaves."""
import asyncio

from imbrex import aio
from mpi4py import MPI

ITEMS = 50


async def produce(comm: aio.Comm, queue: asyncio.Queue[int | None]) -> None:
    if comm.rank == 0:
        for i in range(ITEMS):
            await queue.put(i)
    else:
        for _ in range(ITEMS):
            await queue.put(await comm.recv(source=comm.rank - 1))
    await queue.put(None)


async def main() -> None:
    comm = aio.wrap(MPI.COMM_WORLD)
    queue: asyncio.Queue[int | None] = asyncio.Queue(maxsize=4)
    producer = asyncio.create_task(produce(comm, queue))
    sends = []
    results = []
    while (item := await queue.get()) is not None:
        await asyncio.sleep(0.001)  # the work of this stage
        if comm.rank + 1 < comm.size:
            sends.append(asyncio.create_task(comm.send(item + 1, comm.rank + 1)))
        else:
            results.append(item)
    await asyncio.gather(producer, *sends)
    if results:
        print(f"{len(results)} items, the last is {results[-1]}")


asyncio.run(main())
