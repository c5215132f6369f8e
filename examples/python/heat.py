# SPDX-License-Identifier: BSD-3-Clause
"""The 2-D heat equation: each rank has some rows, and exchanges its outer rows with its neighbours
while it computes the inner ones."""
from __future__ import annotations

import asyncio
from array import array

from imbrex import aio
from mpi4py import MPI

COLUMNS, ROWS, STEPS = 40, 8, 500


def relax(rows: list[array[float]], i: int) -> array[float]:
    up, row, down = rows[i - 1], rows[i], rows[i + 1]
    inner = [0.25 * (up[j] + down[j] + row[j - 1] + row[j + 1]) for j in range(1, COLUMNS - 1)]
    return array("d", [row[0], *inner, row[-1]])


async def step(comm: aio.Comm, rows: list[array[float]]) -> list[array[float]]:
    above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    below = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
    exchange = asyncio.gather(comm.Recv(rows[0], above, 1), comm.Send(rows[ROWS], below, 1),
                              comm.Recv(rows[ROWS + 1], below, 2), comm.Send(rows[1], above, 2))
    await asyncio.sleep(0)  # the messages are in flight
    inner = [relax(rows, i) for i in range(2, ROWS)]
    await exchange
    return [rows[0], relax(rows, 1), *inner, relax(rows, ROWS), rows[ROWS + 1]]


async def main() -> None:
    comm = aio.wrap(MPI.COMM_WORLD)
    rows = [array("d", [0.0] * COLUMNS) for _ in range(ROWS + 2)]
    if comm.rank == 0:
        rows[0] = array("d", [100.0] * COLUMNS)  # the hot edge
    for _ in range(STEPS):
        rows = await step(comm, rows)
    parts = await comm.gather([row.tolist() for row in rows[1:-1]])
    if parts is not None:
        for row in [row for part in parts for row in part][::3]:
            print("".join(" .:-=+*#%@"[min(9, int(value / 10))] for value in row))


asyncio.run(main())
