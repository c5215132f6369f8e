#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cases of imbrex.Executor on three ranks; `executor_cases.py order`: those of the order of calls,
on two ranks or more."""
import collections
import concurrent.futures
import sys
import threading
import time

import imbrex
from mpi4py import MPI

world = MPI.COMM_WORLD
seen = []


def square(x):
    return x * x


def divide(x):
    return 1 / x


def where(_):
    time.sleep(0.001)
    return world.Get_rank()


def leave(code=None):
    sys.exit(code)


def note(number):
    """Returns how often this rank was called, and with which number."""
    seen.append(number)
    return world.Get_rank(), len(seen), number


class Unreadable:
    """Unpickles on the root only."""

    def __reduce__(self):
        return unpickle, ()


def unpickle():
    if world.Get_rank() != 0:
        raise ValueError("unreadable here")
    return 0


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
    error = fails(ValueError, executor.submit(print, Unreadable()).result, "unreadable here")
    assert "in unpickle" in str(error.__cause__), error.__cause__
    assert executor.submit(square, 5).result() == 25


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
    calls = [executor.submit(leave, 3), executor.submit(square, 1), executor.submit(square, 2)]
    assert {fails(imbrex.BrokenRank, calls[0].result, "has left").rank} == left
    fails(imbrex.BrokenRank, calls[1].result, "no rank")
    fails(imbrex.BrokenRank, calls[2].result, "no rank")


def in_order(calls):
    """Checks that each rank was called with rising numbers."""
    ranks = collections.defaultdict(list)
    for rank, time_of_call, number in calls:
        ranks[rank].append((time_of_call, number))
    for rank, of_rank in ranks.items():
        numbers = [number for _, number in sorted(of_rank)]
        assert numbers == sorted(numbers), (rank, numbers)


def calls_begin_in_the_order_of_submission(executor):
    """Many calls wait while the ranks become idle one after the other."""
    in_order([it.result() for it in [executor.submit(note, i) for i in range(1000)]])
    for chunksize in (1, 7):
        in_order(executor.map(note, range(500), chunksize=chunksize))
    slow = [executor.submit(wait_for, 0.002) for _ in range(world.Get_size())]
    in_order([it.result() for it in [executor.submit(note, i) for i in range(200)]])
    assert all(it.done() for it in slow)


def a_call_of_another_thread_goes_behind_those_that_wait(executor):
    calls = [executor.submit(wait_for, 0.05) for _ in range(world.Get_size())]
    calls += [executor.submit(note, i) for i in range(20)]
    thread = threading.Thread(target=lambda: calls.append(executor.submit(note, 20)))
    thread.start()
    thread.join()
    executor.submit(note, 21).add_done_callback(calls.append)
    in_order([it.result() for it in calls[world.Get_size():]])


def a_call_before_the_end_of_a_rank_is_not_its_victim(executor):
    calls = [executor.submit(note, i) for i in range(50)]
    last = [executor.submit(leave) for _ in range(world.Get_size() - 1)]
    behind = executor.submit(note, 50)
    in_order([it.result() for it in calls])
    for it in last:
        fails(imbrex.BrokenRank, it.result, "SystemExit")
    fails(imbrex.BrokenRank, behind.result, "no rank")


def order():
    with imbrex.Executor(world) as executor:
        if executor is not None:
            calls_begin_in_the_order_of_submission(executor)
            a_call_of_another_thread_goes_behind_those_that_wait(executor)
    with imbrex.Executor(world) as executor:
        if executor is not None:
            calls = [executor.submit(wait_for, 0.05) for _ in range(50)]
            executor.shutdown(wait=False, cancel_futures=True)
            assert all(it.cancelled() or it.result() == 0.05 for it in calls)
            assert sum(it.cancelled() for it in calls) > 20
            fails(RuntimeError, lambda: executor.submit(square, 1), "shut down")
    with imbrex.Executor(world) as executor:
        if executor is not None:
            a_call_before_the_end_of_a_rank_is_not_its_victim(executor)
            print("all cases passed", flush=True)


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


order() if sys.argv[1:] == ["order"] else main()
