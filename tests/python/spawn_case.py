#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A collective with a process that does not import imbrex: blocking calls stay those of the MPI."""
import asyncio
import sys

import imbrex
from imbrex import aio
from mpi4py import MPI

CHILD = """
from mpi4py import MPI

parent = MPI.Comm.Get_parent()
parent.Barrier()
parent.send("from the child", 0)
parent.Disconnect()
"""


async def receive(comm):
    return await aio.wrap(comm).recv(0)


assert imbrex.library_path()
child = MPI.COMM_SELF.Spawn(sys.executable, ["-c", CHILD])
child.Barrier()
assert asyncio.run(receive(child)) == "from the child"
child.Disconnect()
print("all cases passed")
