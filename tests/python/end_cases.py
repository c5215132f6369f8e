#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ends of one rank that must be the end of all, and ends that must not: end_cases.py CASE.

The other ranks wait for a message that never comes, so a case that does not end them hangs.
"""
import os
import sys
import threading
import time

CASE = sys.argv[1]
before = sys.excepthook
if CASE == "raise_after":
    from mpi4py import MPI
if CASE == "raise_chained":
    def says_so(*what):
        print("the hook of the program", flush=True)
        before(*what)

    sys.excepthook = says_so
import imbrex
from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
last = world.Get_size() - 1


def wait_for_ever(_=None):
    world.Recv(bytearray(1), source=last, tag=77)


def fail():
    raise ValueError("from the failed rank")


def fails_on_the_last_rank():
    if rank == last:
        fail()
    wait_for_ever()


def exits_on_the_last_rank():
    if rank == last:
        {"exit": lambda: sys.exit(3), "exit_text": lambda: sys.exit("words of the end"),
         "exit_builtin": lambda: exit(3)}[CASE]()
    wait_for_ever()


def ends_a_part_only():
    """A program goes on after each of these."""
    try:
        sys.exit(5)
    except SystemExit as error:
        assert (error.code, repr(error), type(error).__name__) == (
            5, "SystemExit(5)", "SystemExit")
        error.code = 6
        assert error.code == 6
    for function in (fail, lambda: sys.exit(7)):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    child = os.fork()
    if child == 0:
        try:
            fail()
        except ValueError:
            sys.excepthook(*sys.exc_info())
        os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
    world.Barrier()
    print("goes on", flush=True)
    sys.exit(0 if rank == last else None)


def the_block_of_an_executor_fails():
    with imbrex.Executor(world) as executor:
        if executor is not None:
            executor.submit(wait_for_ever)
            time.sleep(0.2)
            sys.exit(3) if CASE == "executor_exit" else fail()


def the_exception_of_a_block_is_caught():
    """The other ranks go on when their calls have ended."""
    try:
        with imbrex.Executor(world) as executor:
            if executor is not None:
                waiting = [executor.submit(time.sleep, 0.2) for _ in range(20)]
                time.sleep(0.1)
                began = time.monotonic()
                fail()
    except ValueError:
        assert time.monotonic() - began < 0.1
        assert sum(it.cancelled() for it in waiting) >= 20 - last
    with imbrex.Executor(world) as executor:
        if executor is not None:
            assert executor.submit(abs, -1).result() == 1
            print("goes on", flush=True)


def an_executor_that_nobody_waits_for_ends_its_calls():
    executor = imbrex.Executor(world)
    if executor.__enter__() is not None:
        executor.submit(time.sleep, 0.3).add_done_callback(
            lambda it: print("call has ended", flush=True))
        executor.shutdown(wait=False)


{"raise": fails_on_the_last_rank, "raise_after": fails_on_the_last_rank,
 "raise_chained": fails_on_the_last_rank, "alone": fail, "exit": exits_on_the_last_rank,
 "exit_text": exits_on_the_last_rank, "exit_builtin": exits_on_the_last_rank,
 "part": ends_a_part_only, "executor": the_block_of_an_executor_fails,
 "executor_exit": the_block_of_an_executor_fails,
 "executor_caught": the_exception_of_a_block_is_caught,
 "executor_left": an_executor_that_nobody_waits_for_ends_its_calls}[CASE]()
