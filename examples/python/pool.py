# SPDX-License-Identifier: BSD-3-Clause
"""Functions on other ranks, by the interface of concurrent.futures."""
import imbrex
from mpi4py import MPI


def square(x: int) -> int:
    return x * x


def fail(x: int) -> float:
    return 1 / x


with imbrex.Executor(MPI.COMM_WORLD) as executor:
    if executor is not None:
        print(sum(executor.map(square, range(1000), chunksize=50)))
        error = executor.submit(fail, 0).exception()
        print(type(error).__name__, "On rank" in str(error.__cause__ if error else ""))
        cannot = executor.submit(lambda: 0).exception()
        print("cannot pickle:", cannot is not None)
