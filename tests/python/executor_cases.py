#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cases of imbrex.Executor on three ranks."""
import concurrent.futures
import time

import imbrex
from mpi4py import MPI

world = MPI.COMM_WORLD


def square(x):
    return x * x


def divide(x):
    return 1 / x


def where(_):
    time.sleep(0.001)
    return world.Get_rank()


def leave(_=None):
    raise SystemExit


def unpicklable():
    return lambda: 0


def wait_for(seconds):
    time.sleep(seconds)
    return seconds


def fails(kind, function, word):
    try:
        function()
    except kind as error:
        assert word in str(error), error
        return error
    raise AssertionError(f"{kind} was to come")


def results_come_in_order_and_progress_counts_items(executor):
    seen = []
    got = list(executor.map(square, range(100), chunksize=7,
                            progress=lambda done, total: seen.append((done, total))))
    assert got == [i * i for i in range(100)]
    # The last call may still be under way: the result is there before its callback has returned.
    while len(seen) < 15:
        time.sleep(0.001)
    assert sorted(seen) == seen and seen[-1] == (100, 100), seen
    assert list(executor.map(square, [])) == []
    assert list(executor.map(max, [1, 5], [3, 4])) == [3, 5]


def the_other_ranks_share_the_calls(executor):
    assert set(executor.map(where, range(20))) == {1, 2}


def an_exception_comes_with_the_remote_traceback(executor):
    got = executor.map(divide, [1, 0, 1])
    assert next(got) == 1
    error = fails(ZeroDivisionError, lambda: next(got), "division")
    assert "in divide" in str(error.__cause__) and "On rank" in str(error.__cause__)
    fails(TypeError, executor.submit(unpicklable).result, "does not pickle")
    fails(Exception, executor.submit(lambda: 0).result, "pickle")
    assert executor.submit(square, 4).result() == 16


def a_time_limit_ends_a_map_and_a_pending_call_can_be_cancelled(executor):
    fails(TimeoutError, lambda: list(executor.map(wait_for, [0.3] * 3, timeout=0.05)), "")
    fails(ValueError, lambda: executor.map(square, [1], chunksize=0), "chunksize")
    running = [executor.submit(wait_for, 0.1) for _ in range(2)]
    pending = [executor.submit(square, 1) for _ in range(3)]
    assert pending[2].cancel()
    assert pending[0].result() == 1
    done, _ = concurrent.futures.wait(running)
    assert len(done) == 2


def a_rank_that_leaves_is_named_and_the_others_go_on(executor):
    error = fails(imbrex.BrokenRank, executor.submit(leave).result, "SystemExit")
    assert f"rank {error.rank} " in str(error) and "leave" in str(error), error
    left = {1, 2} - {error.rank}
    assert set(executor.map(where, range(4))) == left
    calls = [executor.submit(leave), executor.submit(square, 1), executor.submit(square, 2)]
    assert {fails(imbrex.BrokenRank, calls[0].result, "has left").rank} == left
    fails(imbrex.BrokenRank, calls[1].result, "no rank")
    fails(imbrex.BrokenRank, calls[2].result, "no rank")


def main():
    fails(ValueError, lambda: imbrex.Executor(MPI.COMM_SELF), "mpirun")
    outside = imbrex.Executor(world)
    fails(RuntimeError, lambda: outside.submit(square, 1), "not entered")
    with outside as executor:
        if executor is not None:
            results_come_in_order_and_progress_counts_items(executor)
            the_other_ranks_share_the_calls(executor)
            an_exception_comes_with_the_remote_traceback(executor)
            a_time_limit_ends_a_map_and_a_pending_call_can_be_cancelled(executor)
    fails(RuntimeError, lambda: outside.submit(square, 1), "shut down")
    with imbrex.Executor(world) as executor:
        if executor is not None:
            a_rank_that_leaves_is_named_and_the_others_go_on(executor)
            print("all cases passed", flush=True)


main()
