#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cases of imbrex.aio on two ranks: aio_cases.py ORDER.

`before`: imbrex is imported before mpi4py; `after`: behind it, with MPI initialised; `started`:
before it, and MPI is initialised by the program; `funneled`: with a thread level that is too low.
"""
import array
import asyncio
import contextvars
import gc
import os
import signal
import sys
import threading
import time

ORDER = sys.argv[1]
if ORDER == "after":
    from mpi4py import MPI
import imbrex

if ORDER == "started":
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    MPI.Init_thread(MPI.THREAD_MULTIPLE)
elif ORDER == "funneled":
    import mpi4py

    mpi4py.rc.thread_level = "funneled"
    from mpi4py import MPI
elif ORDER == "before":
    from mpi4py import MPI

from imbrex import _hub, aio

assert imbrex.library_path()
world = MPI.COMM_WORLD
rank = world.Get_rank()
peer = 1 - rank
MESSAGES = 200


async def objects_arrive_by_tag(comm):
    got = await asyncio.gather(*[comm.recv(peer, i) for i in range(MESSAGES)],
                               *[comm.send({"n": i * i}, peer, i) for i in range(MESSAGES)])
    assert [it["n"] for it in got[:MESSAGES]] == [i * i for i in range(MESSAGES)]


async def long_objects_arrive(comm):
    text = "x" * 3_000_000
    sent, got = await asyncio.gather(comm.send(text, peer), comm.recv(peer))
    assert sent is None and got == text


async def mpi4py_understands_what_is_sent(comm):
    status = MPI.Status()
    await comm.send([1, "two"], peer, 5)
    assert world.recv(source=peer, tag=5) == [1, "two"]
    world.isend("back", peer, 6).wait()
    assert await comm.recv(status=status) == "back"
    assert (status.source, status.tag) == (peer, 6)


async def buffers_arrive(comm):
    got = array.array("d", [0.0] * 1000)
    mine = array.array("d", [float(rank)] * 1000)
    status = await comm.Sendrecv(mine, peer, 1, got, peer, 1)
    assert got == array.array("d", [float(peer)] * 1000)
    assert status.Get_count(MPI.DOUBLE) == 1000
    await asyncio.gather(comm.Recv(got, peer, 2), comm.Ssend(mine, peer, 2))
    request = comm.Irecv(got, peer, 3)
    await comm.Isend(mine, peer, 3)
    assert (await request).source == peer
    sums = array.array("d", [0.0])
    one = array.array("d", [1.0])
    await aio.wrap(world.Iallreduce(one, sums))
    assert sums[0] == 2.0


async def collectives_agree(comm):
    assert await comm.allgather(("r", rank)) == [("r", 0), ("r", 1)]
    assert await comm.bcast("root's" if rank == 0 else None) == "root's"
    assert await comm.gather(rank, 1) == ([0, 1] if rank == 1 else None)
    assert await comm.scatter(["a", "b"] if rank == 0 else None) == "ab"[rank]
    assert await comm.alltoall([rank * 10, rank * 10 + 1]) == [rank, 10 + rank]
    assert await comm.allreduce(rank + 1) == 3
    assert await comm.reduce([rank], lambda a, b: a + b) == ([0, 1] if rank == 0 else None)
    total = array.array("i", [0, 0])
    await comm.Allreduce(array.array("i", [rank, 1]), total)
    assert list(total) == [1, 2]
    # Begun together, they go in the order of their begin.
    a, b, _, c = await asyncio.gather(comm.allgather("a"), comm.allgather("b"), comm.barrier(),
                                      comm.bcast(7))
    assert (a, b, c) == (["a", "a"], ["b", "b"], 7)


async def a_receive_is_taken_back_and_a_late_message_is_not_lost(comm):
    for seconds in (0, 0.02):
        try:
            async with asyncio.timeout(seconds):
                await comm.recv(peer, 77)
            raise AssertionError("nothing was sent")
        except TimeoutError:
            pass
    await comm.barrier()
    await comm.send("late", peer, 77)
    assert await comm.recv(peer, 77) == "late"


async def cancelled_while_messages_fly_nothing_is_lost_and_order_is_kept(comm):
    count = 300

    async def produce():
        for i in range(count):
            await comm.send(i, peer, 9)
            if i % 7 == 0:
                await asyncio.sleep(0)

    async def consume():
        got = []
        tries = 0
        while len(got) < count:
            task = asyncio.ensure_future(comm.recv(peer, 9))
            tries += 1
            for _ in range(tries % 7):
                await asyncio.sleep(0)
            task.cancel()
            try:
                got.append(await task)
            except asyncio.CancelledError:
                await asyncio.sleep(0.0001)
        return got

    _, got = await asyncio.gather(produce(), consume())
    assert got == list(range(count)), got


async def receives_of_both_kinds_keep_the_order_when_they_are_cancelled(comm):
    count = 300

    async def produce():
        for i in range(count):
            await comm.send(i, peer, 10)
            if i % 5 == 0:
                await asyncio.sleep(0)

    async def receive_bytes():
        data = bytearray(100)
        await comm.Recv(data, peer, 10)
        return MPI.pickle.loads(data)

    async def consume():
        got = []
        tries = 0
        while len(got) < count:
            tries += 1
            task = asyncio.ensure_future(receive_bytes() if tries % 3 else comm.recv(peer, 10))
            for _ in range(tries % 7):
                await asyncio.sleep(0)
            task.cancel()
            try:
                got.append(await task)
            except asyncio.CancelledError:
                await asyncio.sleep(0.0001)
        return got

    _, got = await asyncio.gather(produce(), consume())
    assert got == list(range(count)), got


async def wrong_buffers_are_exceptions_and_leave_the_message(comm):
    kinds = (TypeError, ValueError, BufferError)
    await fails(kinds, comm.Send(3.5, peer))
    await fails(kinds, comm.Recv("text", peer))
    await fails(kinds, comm.Recv(b"not writable", peer))
    await fails(kinds, comm.Sendrecv(b"x", peer, 1, 3.5, peer, 1))
    assert await comm.Sendrecv(b"y", peer, 2, bytearray(1), peer, 2)
    assert (await comm.Sendrecv(b"z", peer, 3, bytearray(1), peer, 1)).count == 1  # what it sent
    assert await comm.Recv(bytearray(1), peer, 3)
    other = asyncio.ensure_future(comm.recv(peer, 500))  # so that receives probe first
    await comm.send("stays", peer, 42)
    await asyncio.sleep(0)
    await fails(kinds, comm.Recv(3.5, peer, 42))
    assert await comm.recv(peer, 42) == "stays"
    await comm.send(None, peer, 500)
    await other


async def a_late_message_goes_to_the_receive_that_waits_and_order_is_kept(comm):
    for cancelled in range(4):
        first = asyncio.ensure_future(comm.recv(peer, 21))
        second = asyncio.ensure_future(comm.recv(peer, 21))
        await asyncio.sleep(0)
        await comm.barrier()
        await comm.send(1, peer, 21)
        for _ in range(cancelled):
            await asyncio.sleep(0.0005)
        first.cancel()
        left = await asyncio.gather(first, return_exceptions=True)
        got = [it for it in left if it == 1]
        if not got:
            assert await second == 1  # there is no other message
        await comm.barrier()
        await comm.send(2, peer, 21)
        assert await (second if got else comm.recv(peer, 21)) == 2
        await comm.barrier()


async def a_cancelled_request_is_taken_back(comm):
    data = bytearray(4)

    async def wait():
        await comm.Irecv([data, MPI.BYTE], peer, 88)

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0.01)
    task.cancel()
    try:
        await task
        raise AssertionError("nothing was sent")
    except asyncio.CancelledError:
        pass
    await comm.barrier()
    await comm.send("free", peer, 88)
    assert await comm.recv(peer, 88) == "free"
    assert bytes(data) == bytes(4)


async def messages_are_iterated(comm):
    async def produce():
        for i in range(20):
            await comm.send(i, peer, 3)

    got = []
    producer = asyncio.ensure_future(produce())
    async for it in comm.messages(tag=3):
        got.append(it)
        if len(got) == 20:
            break
    await producer
    assert got == list(range(20))


async def probe_leaves_the_message(comm):
    await comm.send("probed", peer, 12)
    status = await comm.probe(peer, 12)
    assert (status.source, status.tag) == (peer, 12)
    assert await comm.recv(peer, 12) == "probed"


async def fails(kind, awaitable, word=""):
    try:
        await awaitable
    except kind as error:
        assert word in str(error), error
        return error
    raise AssertionError(f"{kind} was to come")


async def bad_input_is_an_exception(comm):
    for bad in (comm.recv(5), comm.send(1, 5), comm.recv(peer, -7), comm.Recv(bytearray(1), 9)):
        error = await fails(MPI.Exception, bad)
        assert error.Get_error_class() in (MPI.ERR_RANK, MPI.ERR_TAG)
    await fails((AttributeError, TypeError, Exception), comm.send(lambda: 0, peer), "pickle")
    await fails(ValueError, comm.alltoall([1, 2, 3]), "alltoall needs 2")
    await fails(MPI.Exception, comm.gather(1, root=2))
    await comm.send("longer than the buffer", peer, 4)
    error = await fails(MPI.Exception, comm.Recv(bytearray(2), peer, 4))
    assert error.Get_error_class() == MPI.ERR_TRUNCATE
    request = comm.Isend(b"x", peer, 41)
    await request
    await fails(RuntimeError, request, "awaited already")
    assert await comm.Recv(bytearray(1), peer, 41)
    assert await comm.recv(MPI.PROC_NULL) is None
    for it, kind in ((3, TypeError), (MPI.COMM_NULL, ValueError)):
        try:
            aio.wrap(it)
            raise AssertionError(it)
        except kind:
            pass


async def a_task_keeps_its_context_and_its_cancel_message(comm):
    name = contextvars.ContextVar("name", default="")

    async def receive(tag):
        name.set(f"of {tag}")
        got = await comm.recv(peer, tag)
        return got, name.get(), asyncio.current_task().get_name()

    tasks = [asyncio.create_task(receive(i), name=f"task {i}") for i in range(20)]
    await asyncio.sleep(0)
    await asyncio.gather(*[comm.send(i, peer, i) for i in range(20)])
    assert await asyncio.gather(*tasks) == [(i, f"of {i}", f"task {i}") for i in range(20)]
    assert name.get() == ""
    task = asyncio.create_task(receive(20))
    await asyncio.sleep(0.001)
    task.cancel("no longer needed")
    error = await fails(asyncio.CancelledError, task, "no longer needed")
    assert error.args == ("no longer needed",)


async def other_callbacks_of_the_loop_have_their_turn(comm):
    turns = 0
    over = False

    async def count_turns():
        nonlocal turns
        while not over:
            turns += 1
            await asyncio.sleep(0)

    async def exchange(tag):
        for i in range(100):
            await asyncio.gather(comm.send(i, peer, tag), comm.recv(peer, tag))

    counting = asyncio.ensure_future(count_turns())
    await asyncio.gather(*[exchange(i) for i in range(8)])
    over = True
    await counting
    # At most 8 completions come at once, and an entry takes 16 times at most.
    assert turns >= 5, turns


async def many_completions_cost_one_entry(comm):
    count = 2000
    before = aio.counts()
    receives = [asyncio.ensure_future(comm.recv(peer, i)) for i in range(count)]
    await asyncio.sleep(0)
    await comm.barrier()
    for i in range(count):
        await comm.send(i, peer, i)
    assert await asyncio.gather(*receives) == list(range(count))
    after = aio.counts()
    entries = after["entries"] - before["entries"]
    assert after["completions"] - before["completions"] >= count
    print(f"{entries / count:.3f} entries for each completion", flush=True)


CASES = [objects_arrive_by_tag, long_objects_arrive, mpi4py_understands_what_is_sent,
         buffers_arrive, collectives_agree,
         a_receive_is_taken_back_and_a_late_message_is_not_lost,
         cancelled_while_messages_fly_nothing_is_lost_and_order_is_kept,
         receives_of_both_kinds_keep_the_order_when_they_are_cancelled,
         wrong_buffers_are_exceptions_and_leave_the_message,
         a_late_message_goes_to_the_receive_that_waits_and_order_is_kept,
         a_cancelled_request_is_taken_back, messages_are_iterated, probe_leaves_the_message,
         bad_input_is_an_exception, a_task_keeps_its_context_and_its_cancel_message,
         other_callbacks_of_the_loop_have_their_turn, many_completions_cost_one_entry]


async def all_cases():
    for case in CASES:
        print(f"rank {rank}: {case.__name__}", flush=True)
        await case(aio.wrap(world))
        await aio.wrap(world).barrier()


def under_trio():
    import trio

    async def main():
        comm = aio.wrap(world)
        got = {}

        async def receive(i):
            got[i] = await comm.recv(peer, i)

        async with trio.open_nursery() as nursery:
            for i in range(50):
                nursery.start_soon(receive, i)
                nursery.start_soon(comm.send, i * i, peer, i)
        assert got == {i: i * i for i in range(50)}
        with trio.move_on_after(0.02) as scope:
            await comm.recv(peer, 77)
        assert scope.cancelled_caught
        await comm.barrier()
        await comm.send("late", peer, 77)
        assert await comm.recv(peer, 77) == "late"

    trio.run(main)
    trio.run(main)


def under_anyio():
    import anyio

    async def main():
        comm = aio.wrap(world)
        async with anyio.create_task_group() as group:
            group.start_soon(comm.send, "any", peer)
            assert await comm.recv(peer) == "any"
        with anyio.move_on_after(0.02) as scope:
            await comm.recv(peer, 77)
        assert scope.cancelled_caught
        await comm.barrier()

    for backend in ("asyncio", "trio"):
        anyio.run(main, backend=backend)


def under_uvloop():
    import uvloop

    uvloop.run(all_cases())


def several_loops_in_threads():
    comms = [world.Dup() for _ in range(3)]
    failures = []

    def run(comm):
        try:
            asyncio.run(objects_arrive_by_tag(aio.wrap(comm)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(comm,)) for comm in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for comm in comms:
        comm.Free()


def one_thread_at_a_time_closes_the_queue_of_a_loop():
    count = 4
    closing, twice = set(), []
    has_closed = _hub.Hub.has_closed

    def slowly(hub):
        if hub in closing:
            twice.append(hub)
        closing.add(hub)
        time.sleep(0.01)  # the other threads sweep now
        closing.discard(hub)
        return not twice and has_closed(hub)

    async def use():
        await aio.wrap(MPI.COMM_SELF).barrier()

    def run(barrier):
        asyncio.run(use())
        barrier.wait()
        aio.wrap(MPI.COMM_SELF)

    _hub.Hub.has_closed = slowly
    try:
        together = threading.Barrier(count)
        threads = [threading.Thread(target=run, args=(together,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        _hub.Hub.has_closed = has_closed
    assert not twice


def a_loop_closed_with_receives_open_takes_them_back():
    loop = asyncio.new_event_loop()

    async def begin_and_let_run():
        comm = aio.wrap(world)
        tasks = [asyncio.ensure_future(comm.Recv(bytearray(100), peer, 56)),
                 asyncio.ensure_future(comm.recv(peer, 55))]
        await asyncio.sleep(0.01)
        return tasks

    tasks = loop.run_until_complete(begin_and_let_run())
    loop.close()
    for task in tasks:
        task._log_destroy_pending = False
    aio.wrap(world)  # looks for loops that have ended
    world.Barrier()
    for tag in (55, 56):
        world.send("kept", peer, tag)
        assert world.recv(source=peer, tag=tag) == "kept"


def buffers_live_as_long_as_mpi_uses_them():
    size = 2_000_000
    loop = asyncio.new_event_loop()

    async def send():
        task = asyncio.ensure_future(aio.wrap(world).Send(bytes([rank + 1]) * size, peer, 57))
        await asyncio.sleep(0)
        return task

    task = loop.run_until_complete(send())
    loop.close()
    task._log_destroy_pending = False
    del task, loop
    aio.wrap(world)
    gc.collect()
    others = [bytearray(size) for _ in range(4)]  # they would get the memory
    got = bytearray(size)
    world.Recv(got, peer, 57)
    assert got == bytes([peer + 1]) * size
    del others
    world.Barrier()
    aio.wrap(world)


def an_interrupt_ends_the_loop():
    async def main():
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
        await aio.wrap(world).recv(peer, 66)

    try:
        asyncio.run(main())
        raise AssertionError("no interrupt")
    except KeyboardInterrupt:
        pass
    world.Barrier()
    world.send("after", peer, 66)
    assert world.recv(source=peer, tag=66) == "after"


def an_exception_that_ends_the_loop_loses_no_completion():
    loop = asyncio.new_event_loop()
    comm = aio.wrap(world)
    tags = range(60, 70)

    async def receive(tag):
        got = await comm.recv(peer, tag)
        if tag == 62:
            raise KeyboardInterrupt
        return got

    async def exchange():
        receives = [asyncio.ensure_future(receive(tag)) for tag in tags]
        await asyncio.sleep(0)
        world.Barrier()
        for tag in tags:
            world.send(tag, peer, tag)
        world.Barrier()
        got.extend(receives)
        await asyncio.sleep(10)

    got = []
    try:
        loop.run_until_complete(exchange())
        raise AssertionError("no interrupt")
    except KeyboardInterrupt:
        pass
    for tag, receive in zip(tags, got):
        if tag == 62:
            assert isinstance(receive.exception(), KeyboardInterrupt)
        else:
            assert loop.run_until_complete(asyncio.wait_for(receive, 30)) == tag
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    world.Barrier()


def a_child_of_fork_is_told_what_to_do():
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(aio.wrap(world).recv(peer))
        except RuntimeError as error:
            os._exit(0 if "spawn" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def finalize_ends_what_waits():
    async def main():
        waiting = [asyncio.ensure_future(aio.wrap(world).recv(peer, 99)),
                   asyncio.ensure_future(aio.wrap(world).Recv(bytearray(1), peer, 98))]
        await asyncio.sleep(0.01)
        MPI.Finalize()
        for receive in waiting:
            await fails(RuntimeError, receive, "MPI.Finalize was called while")
        await fails(RuntimeError, aio.wrap(MPI.COMM_WORLD).recv(), "has been called")

    asyncio.run(main())


def a_low_thread_level_is_told():
    async def main():
        await fails(RuntimeError, aio.wrap(world).recv(peer), "THREAD_MULTIPLE")

    asyncio.run(main())


def main():
    missing = []
    if ORDER == "funneled":
        a_low_thread_level_is_told()
        print(f"rank {rank}: all cases passed")
        return
    asyncio.run(all_cases())
    for run in (under_uvloop, under_trio, under_anyio):
        print(f"rank {rank}: {run.__name__}", flush=True)
        try:
            run()
        except ImportError as error:
            missing.append(error.name)
        world.Barrier()
    for run in (several_loops_in_threads, one_thread_at_a_time_closes_the_queue_of_a_loop,
                a_loop_closed_with_receives_open_takes_them_back,
                buffers_live_as_long_as_mpi_uses_them, an_interrupt_ends_the_loop,
                an_exception_that_ends_the_loop_loses_no_completion,
                a_child_of_fork_is_told_what_to_do, finalize_ends_what_waits):
        print(f"rank {rank}: {run.__name__}", flush=True)
        run()
    print(f"rank {rank}: all cases passed" + (f", without {missing}" if missing else ""))


main()
