# SPDX-License-Identifier: BSD-3-Clause
"""``await`` on MPI, under mpi4py's names.

A wrapped communicator has the communication calls of mpi4py's `Comm` as coroutines: lower-case
names send pickled objects, upper-case names send buffers. The coroutines run under asyncio, uvloop,
trio and anyio. No coroutine polls: imbrex finds completions and makes a descriptor readable.
"""
from __future__ import annotations

import functools
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from typing import Any, TypeVar, overload

from mpi4py import MPI

from imbrex import _hub

__all__ = ["Comm", "Request", "counts", "wrap"]

_T = TypeVar("_T")


def counts() -> dict[str, int]:
    """Returns how often the interpreter was entered for completions, and how many there were.

    >>> sorted(counts())
    ['completions', 'entries']
    """
    return dict(_hub._counts)


class Request:
    """An awaitable request: ``status = await request``.

    It can be awaited once; the second await raises RuntimeError. If the awaiting task is cancelled,
    a receive is taken back; a receive whose message has been matched already completes, and the
    await returns. Raises MPI.Exception if the operation fails.
    """

    def __init__(self, request: MPI.Request, keep: object = None) -> None:
        self._request: MPI.Request | None = request
        self._keep = keep

    def __await__(self) -> Generator[Any, Any, MPI.Status]:
        request, self._request = self._request, None
        if request is None:
            raise RuntimeError("this request has been awaited already: keep the first result")
        return self._wait(request).__await__()

    async def _wait(self, request: MPI.Request) -> MPI.Status:
        status = MPI.Status()
        if request.Test(status):
            return status
        hub = _hub.current()
        return await hub.wait_or_take_back(hub.give(request, (request, self._keep)))


class _Turns:
    """Collectives that consist of several ones keep others of their communicator away."""

    def __init__(self) -> None:
        self._busy = False
        self._waiting: deque[tuple[_hub.Hub, _hub.Entry]] = deque()

    async def enter(self, stays: bool) -> None:
        if self._busy or self._waiting:
            hub = _hub.current()
            entry = _hub.Entry(0, None, hub.loop)
            self._waiting.append((hub, entry))
            try:
                await hub.wait_for(entry)
            except BaseException:
                if entry.done:
                    self.leave()
                else:
                    self._waiting.remove((hub, entry))
                raise
            if not stays:
                self.leave()
        elif stays:
            self._busy = True

    def leave(self) -> None:
        self._busy = bool(self._waiting)
        if self._waiting:
            _, entry = self._waiting.popleft()
            entry.complete()


def _serves(wanted: tuple[int, int], status: MPI.Status) -> bool:
    source, tag = wanted
    return source in (MPI.ANY_SOURCE, status.source) and tag in (MPI.ANY_TAG, status.tag)


class Comm:
    """A communicator whose calls are coroutines. Made by `wrap`.

    Collectives follow MPI's rule: every rank calls the collectives of a communicator in the same
    order. All coroutines of one object belong to one thread.
    """

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self._turns = _Turns()
        self._late: deque[_hub.Entry] = deque()  # messages of receives that were cancelled too late
        self._left = 0  # cancelled probes that may still bring a message
        # Probes that are open, the oldest first, and what they wait for.
        self._pending: dict[_hub.Entry, tuple[tuple[int, int], _hub.Hub]] = {}

    @property
    def rank(self) -> int:
        """The rank of this process in the communicator."""
        return self.comm.Get_rank()

    @property
    def size(self) -> int:
        """The number of processes."""
        return self.comm.Get_size()

    # ---- messages ----------------------------------------------------------------------------

    async def _match(self, source: int, tag: int) -> tuple[MPI.Message, MPI.Status]:
        wanted = (source, tag)
        while True:
            found = self._take_late(wanted)
            if found is None:
                found = await self._wait_for_message(wanted)
            if not found.outcome().Is_cancelled():
                break
            # Taken back by _keep_late: an older message is there.
        return found.message, found.outcome()

    async def _wait_for_message(self, wanted: tuple[int, int]) -> _hub.Entry:
        hub = _hub.current()
        entry = hub.probe(self.comm, *wanted)
        hub.drain()
        if not entry.done:
            self._pending[entry] = (wanted, hub)
            try:
                await hub.wait_for(entry)
            except BaseException:
                del self._pending[entry]
                if entry.done:
                    self._keep_late(entry)
                else:
                    self._left += 1
                    entry.leave_to(self._note_end_of_left)
                    hub.cancel(entry)
                raise
            del self._pending[entry]
        entry.outcome()
        older = self._take_late(wanted)
        if older is None:
            return entry
        self._keep_late(entry)
        return older

    def _take_late(self, wanted: tuple[int, int]) -> _hub.Entry | None:
        for late in self._late:
            if _serves(wanted, late.outcome()):
                self._late.remove(late)
                return late
        return None

    def _note_end_of_left(self, entry: _hub.Entry) -> None:
        self._left -= 1
        self._keep_late(entry)

    def _keep_late(self, entry: _hub.Entry) -> None:
        if entry.error is not None or entry.is_cancelled():
            return
        self._late.append(entry)
        for pending, (wanted, hub) in self._pending.items():
            if not pending.done and _serves(wanted, entry.status):
                hub.cancel_soon(pending)
                return

    async def _match_and_receive(self, buf: Any, source: int, tag: int) -> MPI.Status:
        self.comm.Recv_init(buf, source, tag).Free()  # a wrong buffer fails before the match
        message, found = await self._match(source, tag)
        if found.source == MPI.PROC_NULL:
            return found
        try:
            return await self._receive(message, buf)
        except Exception:  # not a buffer: the message stays
            if message != MPI.MESSAGE_NULL:
                self._put_back(found, message)
            raise

    def _put_back(self, status: MPI.Status, message: MPI.Message) -> None:
        entry = _hub.Entry(0, None, None)
        entry.hold(status, message)
        self._late.appendleft(entry)

    async def _receive(self, message: MPI.Message, buffer: Any) -> MPI.Status:
        request = message.Irecv(buffer)
        status = MPI.Status()
        if request.Test(status):
            return status
        hub = _hub.current()
        return await hub.wait_to_the_end(hub.give(request, buffer))

    async def recv(self, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG,
                   status: MPI.Status | None = None) -> Any:
        """Receives one object. Cancelled, it leaves the message to the next receive.

        Returns None from MPI.PROC_NULL. Raises MPI.Exception for an invalid rank or tag.

        >>> import asyncio
        >>> async def send_and_receive(comm):
        ...     await comm.send({"n": 1}, dest=0, tag=5)
        ...     return await comm.recv(source=0, tag=5)
        >>> asyncio.run(send_and_receive(wrap(MPI.COMM_SELF)))
        {'n': 1}
        """
        message, found = await self._match(source, tag)
        if found.source == MPI.PROC_NULL:
            result = None
        else:
            data = bytearray(found.Get_elements(MPI.BYTE))
            await self._receive(message, [data, MPI.BYTE])
            result = MPI.pickle.loads(data)
        if status is not None:
            _copy(found, status)
        return result

    async def Recv(self, buf: Any, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG,
                   status: MPI.Status | None = None) -> MPI.Status:
        """Receives into a buffer of mpi4py's forms, which must hold the message.

        A buffer is an object with the buffer interface, or a list ``[buffer, count, datatype]``.
        Returns the status. Raises MPI.Exception (MPI.ERR_TRUNCATE) if the message is longer.

        >>> import array, asyncio
        >>> numbers = array.array("d", [0.0, 0.0])
        >>> async def send_and_receive(comm):
        ...     await comm.Send(array.array("d", [1.5]), dest=0)
        ...     return (await comm.Recv(numbers)).Get_count(MPI.DOUBLE)
        >>> asyncio.run(send_and_receive(wrap(MPI.COMM_SELF)))
        1
        >>> numbers
        array('d', [1.5, 0.0])
        """
        hub = _hub.current()
        # An older probe may have to get the message.
        if self._pending or self._late or self._left or hub.probes_first:
            found = await self._match_and_receive(buf, source, tag)
        else:
            request = self.comm.Irecv(buf, source, tag)
            found = MPI.Status()
            if not request.Test(found):
                found = await hub.wait_or_take_back(hub.give(request, (request, buf)))
        if status is not None:
            _copy(found, status)
        return found

    async def _finish(self, request: MPI.Request, keep: object) -> None:
        if not request.Test():
            hub = _hub.current()
            await hub.wait(hub.give(request, (request, keep)))

    async def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends one object; returns when MPI has taken it.

        Raises MPI.Exception for an invalid rank or tag, and pickle's exception for an object that
        does not pickle.
        """
        data = MPI.pickle.dumps(obj)
        await self._finish(self.comm.Isend([data, MPI.BYTE], dest, tag), data)

    async def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends one object; returns when a receive has begun to take it."""
        data = MPI.pickle.dumps(obj)
        await self._finish(self.comm.Issend([data, MPI.BYTE], dest, tag), data)

    async def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Sends a buffer, which must not change until the coroutine returns.

        If the coroutine is cancelled, the message goes on and the buffer stays alive.
        """
        request = self.comm.Isend(buf, dest, tag)
        if not request.Test():
            await self._finish(request, buf)

    async def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """As Send; returns when a receive has begun to take the message."""
        await self._finish(self.comm.Issend(buf, dest, tag), buf)

    async def sendrecv(self, sendobj: Any, dest: int, sendtag: int = 0,
                       source: int = MPI.ANY_SOURCE, recvtag: int = MPI.ANY_TAG,
                       status: MPI.Status | None = None) -> Any:
        """Sends one object and receives another one.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).sendrecv("me", dest=0))
        'me'
        """
        data = MPI.pickle.dumps(sendobj)
        request = self.comm.Isend([data, MPI.BYTE], dest, sendtag)
        return await self._receive_beside(self.recv(source, recvtag, status), request, data)

    async def Sendrecv(self, sendbuf: Any, dest: int, sendtag: int = 0, recvbuf: Any = None,
                       source: int = MPI.ANY_SOURCE, recvtag: int = MPI.ANY_TAG,
                       status: MPI.Status | None = None) -> MPI.Status:
        """Sends one buffer and receives into another one; returns the status of the receive."""
        request = self.comm.Isend(sendbuf, dest, sendtag)
        receive = self.Recv(recvbuf, source, recvtag, status)
        return await self._receive_beside(receive, request, sendbuf)

    async def _receive_beside(self, receive: Coroutine[Any, Any, _T], send: MPI.Request,
                              keep: object) -> _T:
        if send.Test():
            return await receive
        hub = _hub.current()
        entry = hub.give(send, (send, keep))  # goes on if the receive fails
        result = await receive
        await hub.wait(entry)
        return result

    async def probe(self, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG) -> MPI.Status:
        """Waits until a message is there, and leaves it to the next receive of this object.

        >>> import asyncio
        >>> async def look(comm):
        ...     await comm.send("text", dest=0, tag=7)
        ...     return (await comm.probe()).tag, await comm.recv()
        >>> asyncio.run(look(wrap(MPI.COMM_SELF)))
        (7, 'text')
        """
        message, status = await self._match(source, tag)
        self._put_back(status, message)
        return status

    async def messages(self, source: int = MPI.ANY_SOURCE,
                       tag: int = MPI.ANY_TAG) -> AsyncIterator[Any]:
        """Iterates over the objects that arrive, without an end.

        >>> import asyncio
        >>> async def first(comm):
        ...     await comm.send("one", dest=0, tag=3)
        ...     async for message in comm.messages(tag=3):
        ...         return message
        >>> asyncio.run(first(wrap(MPI.COMM_SELF)))
        'one'
        """
        while True:
            yield await self.recv(source, tag)

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begins a send; the result can be awaited."""
        return Request(self.comm.Isend(buf, dest, tag), buf)

    def Irecv(self, buf: Any, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG) -> Request:
        """Begins a receive; the result can be awaited, once.

        >>> import asyncio
        >>> async def overlap(comm):
        ...     data = bytearray(2)
        ...     receive = comm.Irecv(data)
        ...     await comm.Isend(b"ab", dest=0)
        ...     await receive
        ...     return bytes(data)
        >>> asyncio.run(overlap(wrap(MPI.COMM_SELF)))
        b'ab'
        """
        return Request(self.comm.Irecv(buf, source, tag), buf)

    # ---- collectives -------------------------------------------------------------------------

    async def _collective(self, begin: Callable[..., MPI.Request], *arguments: Any) -> None:
        await self._turns.enter(stays=False)
        await self._finish(begin(*arguments), arguments)

    async def barrier(self) -> None:
        """Waits until every rank has called it.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).barrier())
        """
        await self._collective(self.comm.Ibarrier)

    Barrier = barrier

    async def Bcast(self, buf: Any, root: int = 0) -> None:
        """Sends the root's buffer to every rank."""
        await self._collective(self.comm.Ibcast, buf, root)

    async def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Collects one buffer of each rank at the root; `recvbuf` is None elsewhere."""
        await self._collective(self.comm.Igather, sendbuf, recvbuf, root)

    async def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Like Gather, with a length for each rank."""
        await self._collective(self.comm.Igatherv, sendbuf, recvbuf, root)

    async def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Hands a part of the root's buffer to each rank."""
        await self._collective(self.comm.Iscatter, sendbuf, recvbuf, root)

    async def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Like Scatter, with a length for each rank."""
        await self._collective(self.comm.Iscatterv, sendbuf, recvbuf, root)

    async def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Collects one buffer of each rank at every rank."""
        await self._collective(self.comm.Iallgather, sendbuf, recvbuf)

    async def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Like Allgather, with a length for each rank."""
        await self._collective(self.comm.Iallgatherv, sendbuf, recvbuf)

    async def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Sends one part of the buffer to each rank."""
        await self._collective(self.comm.Ialltoall, sendbuf, recvbuf)

    async def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Like Alltoall, with a length for each rank."""
        await self._collective(self.comm.Ialltoallv, sendbuf, recvbuf)

    async def Reduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM,
                     root: int = 0) -> None:
        """Combines the buffers of all ranks at the root."""
        await self._collective(self.comm.Ireduce, sendbuf, recvbuf, op, root)

    async def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """Combines the buffers of all ranks at every rank.

        >>> import array, asyncio
        >>> total = array.array("d", [0.0])
        >>> asyncio.run(wrap(MPI.COMM_SELF).Allreduce(array.array("d", [2.0]), total))
        >>> total
        array('d', [2.0])
        """
        await self._collective(self.comm.Iallreduce, sendbuf, recvbuf, op)

    async def bcast(self, obj: Any, root: int = 0) -> Any:
        """Returns the root's object on every rank.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).bcast([1, 2]))
        [1, 2]
        """
        data = MPI.pickle.dumps(obj) if self.rank == root else b""
        await self._turns.enter(stays=True)
        try:
            length = bytearray(len(data).to_bytes(8, "little"))
            await self._run(self.comm.Ibcast, [length, MPI.BYTE], root)
            content = bytearray(data) if self.rank == root else bytearray(
                int.from_bytes(length, "little"))
            await self._run(self.comm.Ibcast, [content, MPI.BYTE], root)
        finally:
            self._turns.leave()
        return obj if self.rank == root else MPI.pickle.loads(content)

    # A collective of several steps: cancelled between them it would leave other ranks behind.
    async def _run(self, begin: Callable[..., MPI.Request], *arguments: Any) -> None:
        request = begin(*arguments)
        if not request.Test():
            hub = _hub.current()
            await hub.wait_to_the_end(hub.give(request, (request, arguments)))

    async def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Sends the object at position i to rank i; returns one object of each rank.

        Raises ValueError unless there is one object for each rank.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).alltoall(["mine"]))
        ['mine']
        """
        if len(sendobj) != self.size:
            raise ValueError(f"alltoall needs {self.size} objects, one for each rank, and is given "
                             f"{len(sendobj)}")
        parts = [MPI.pickle.dumps(obj) for obj in sendobj]
        sizes = [len(part) for part in parts]
        theirs = bytearray(8 * self.size)
        ours = b"".join(size.to_bytes(8, "little") for size in sizes)
        await self._turns.enter(stays=True)
        try:
            await self._run(self.comm.Ialltoall, [ours, 8, MPI.BYTE], [theirs, 8, MPI.BYTE])
            lengths = _lengths(theirs)
            content = bytearray(sum(lengths))
            await self._run(self.comm.Ialltoallv, [b"".join(parts), sizes, MPI.BYTE],
                            [content, lengths, MPI.BYTE])
        finally:
            self._turns.leave()
        return _cut(content, lengths)

    async def allgather(self, sendobj: Any) -> list[Any]:
        """Returns the objects of all ranks, on every rank.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).allgather("a"))
        ['a']
        """
        data = MPI.pickle.dumps(sendobj)
        theirs = bytearray(8 * self.size)
        await self._turns.enter(stays=True)
        try:
            await self._run(self.comm.Iallgather, [len(data).to_bytes(8, "little"), MPI.BYTE],
                            [theirs, 8, MPI.BYTE])
            lengths = _lengths(theirs)
            content = bytearray(sum(lengths))
            await self._run(self.comm.Iallgatherv, [data, MPI.BYTE],
                            [content, lengths, MPI.BYTE])
        finally:
            self._turns.leave()
        return _cut(content, lengths)

    async def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Returns the objects of all ranks at the root, and None elsewhere.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).gather(3))
        [3]
        """
        _check_root(root, self.size)
        parts: list[Any] = [None] * self.size
        parts[root] = (sendobj,)
        result = await self.alltoall(parts)
        return [it[0] for it in result] if self.rank == root else None

    async def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Returns the root's object at the position of this rank.

        Raises ValueError at the root unless there is one object for each rank.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).scatter(["a"]))
        'a'
        """
        _check_root(root, self.size)
        parts: Sequence[Any] = [None] * self.size
        if self.rank == root:
            if sendobj is None or len(sendobj) != self.size:
                raise ValueError(f"scatter needs {self.size} objects at the root, one for each "
                                 "rank")
            parts = sendobj
        return (await self.alltoall(parts))[root]

    async def allreduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = MPI.SUM) -> Any:
        """Combines the objects of all ranks, in rank order.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).allreduce(5))
        5
        """
        return functools.reduce(op, await self.allgather(sendobj))

    async def reduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = MPI.SUM,
                     root: int = 0) -> Any:
        """Combines the objects of all ranks at the root; the result is None elsewhere.

        >>> import asyncio
        >>> asyncio.run(wrap(MPI.COMM_SELF).reduce(2, max))
        2
        """
        objects = await self.gather(sendobj, root)
        return None if objects is None else functools.reduce(op, objects)


def _check_root(root: int, size: int) -> None:
    if not 0 <= root < size:
        raise MPI.Exception(MPI.ERR_ROOT)


def _lengths(raw: bytearray) -> list[int]:
    return [int.from_bytes(raw[i:i + 8], "little") for i in range(0, len(raw), 8)]


def _cut(content: bytearray, lengths: Sequence[int]) -> list[Any]:
    result = []
    at = 0
    for length in lengths:
        result.append(MPI.pickle.loads(content[at:at + length]))
        at += length
    return result


def _copy(found: MPI.Status, to: MPI.Status) -> None:
    to.source, to.tag, to.error = found.source, found.tag, found.error
    to.Set_elements(MPI.BYTE, found.Get_elements(MPI.BYTE))


@overload
def wrap(what: MPI.Comm) -> Comm: ...
@overload
def wrap(what: MPI.Request) -> Request: ...
def wrap(what: MPI.Comm | MPI.Request) -> Comm | Request:
    """Returns a communicator whose calls are coroutines, or a request that can be awaited.

    The communicator itself stays usable; the request is null once it is awaited. Raises TypeError
    for other objects, ValueError for MPI.COMM_NULL.

    >>> wrap(MPI.COMM_SELF).size
    1
    >>> wrap("world")
    Traceback (most recent call last):
    TypeError: wrap() takes a communicator or a request of mpi4py, not str
    """
    if isinstance(what, MPI.Request):
        return Request(what)
    if not isinstance(what, MPI.Comm):
        raise TypeError("wrap() takes a communicator or a request of mpi4py, not "
                        f"{type(what).__name__}")
    if what == MPI.COMM_NULL:
        raise ValueError("wrap() is given MPI.COMM_NULL, which has no processes")
    _hub.sweep()
    return Comm(what)
