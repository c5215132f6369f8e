# SPDX-License-Identifier: BSD-3-Clause
"""fork_pool.py LIBRARY: processes of multiprocessing, in fork mode, over a library with OpenMP.

The parent has parallel regions first, so each child is forked beside the threads of a team.
"""
import ctypes
import multiprocessing
import os
import sys
import threading

library = ctypes.CDLL(sys.argv[1])


def members(_):
    return library.members_of_plugin()


def in_thread(results):
    results.append(members(0))


def main():
    context = multiprocessing.get_context("fork")
    assert members(0) == 3
    for _ in range(5):
        with context.Pool(3) as pool:
            assert pool.map(members, range(12)) == [3] * 12
        assert members(0) == 3
    nested = os.fork()
    if nested == 0:
        with context.Pool(2) as pool:
            os._exit(0 if pool.map(members, range(4)) == [3] * 4 and members(0) == 3 else 1)
    assert os.waitpid(nested, 0)[1] == 0
    forked_by_thread = []
    thread = threading.Thread(target=lambda: forked_by_thread.append(context.Pool(2)))
    thread.start()
    thread.join()
    assert forked_by_thread[0].map(members, range(4)) == [3] * 4
    forked_by_thread[0].close()
    forked_by_thread[0].join()
    results = []
    thread = threading.Thread(target=in_thread, args=(results,))
    thread.start()
    thread.join()
    assert results == [3]
    print("done")


if __name__ == "__main__":
    main()
