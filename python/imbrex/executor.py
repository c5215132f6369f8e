# SPDX-License-Identifier: BSD-3-Clause
"""An executor over ranks, with the interface of concurrent.futures.

One rank submits, all others call functions. A thread of the submitting rank runs an event loop that
hands calls to idle ranks.
"""
from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from mpi4py import MPI

from imbrex import aio

__all__ = ["BrokenRank", "Executor", "RemoteTraceback"]

_T = TypeVar("_T")
_CALL, _RESULT = 1, 2


class RemoteTraceback(Exception):
    """The cause of an exception that a function has raised on another rank: its traceback."""


class BrokenRank(concurrent.futures.BrokenExecutor):
    """A rank has left the executor during a call, or MPI has lost it. `rank` is its number."""

    def __init__(self, text: str, rank: int) -> None:
        super().__init__(text)
        self.rank = rank


class Executor(concurrent.futures.Executor):
    """Calls functions on the other ranks of a communicator.

    Every rank makes one and enters it: ``with Executor(comm) as executor:``. On rank `root` the
    block runs and `executor` is the executor; on all others `executor` is None, and the block
    starts once the root has left its own. Functions, arguments and results must pickle. Raises
    ValueError on a communicator of one rank.

    >>> Executor(MPI.COMM_SELF)
    Traceback (most recent call last):
    ValueError: Executor needs a communicator of two ranks at least: start it by mpirun -n 2 or more
    """

    def __init__(self, comm: MPI.Intracomm, root: int = 0) -> None:
        if comm.Get_size() < 2:
            raise ValueError("Executor needs a communicator of two ranks at least: start it by "
                             "mpirun -n 2 or more")
        self._comm = comm.Dup()
        self._root = root
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: asyncio.Queue[int | None] | None = None  # None: there is no rank any more
        self._others: list[int] = []
        self._ended: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._open: dict[asyncio.Task[None], concurrent.futures.Future[Any]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Executor | None:  # type: ignore[override]
        if self._comm.Get_rank() != self._root:
            asyncio.run(self._serve())
            return None
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._lead(started)),
                                        name="imbrex.Executor")
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.shutdown(wait=True, cancel_futures=error is not None)

    # ---- the other ranks ---------------------------------------------------------------------

    async def _serve(self) -> None:
        comm = aio.wrap(self._comm)
        async for call in comm.messages(source=self._root, tag=_CALL):
            if call is None:
                break
            function, arguments, named = call
            try:
                answer = (True, function(*arguments, **named))
            except Exception as error:
                text = f"\nOn rank {comm.rank}:\n{traceback.format_exc()}"
                answer = (False, (error, text))
            except BaseException as error:  # SystemExit: this rank leaves
                await comm.send((None, repr(error)), self._root, _RESULT)
                self._comm.Free()
                raise
            try:
                await comm.send(answer, self._root, _RESULT)
            except Exception as error:  # it does not pickle
                text = f"\nOn rank {comm.rank}: the result does not pickle: {error!r}"
                await comm.send((False, (TypeError(text.strip()), text)), self._root, _RESULT)
        self._comm.Free()

    # ---- the root ----------------------------------------------------------------------------

    async def _lead(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Queue()
        self._ended = asyncio.Event()
        comm = aio.wrap(self._comm)
        self._others = [rank for rank in range(comm.size) if rank != comm.rank]
        for rank in self._others:
            self._idle.put_nowait(rank)
        started.set()
        await self._ended.wait()
        while self._open:
            await asyncio.gather(*self._open)
        for rank in self._others:
            await comm.send(None, rank, _CALL)
        self._comm.Free()

    async def _next_rank(self) -> int:
        assert self._idle is not None
        rank = await self._idle.get()
        if rank is None:
            self._idle.put_nowait(None)  # for the next call that waits
            raise BrokenRank("no rank of the executor is left: all have left it", -1)
        return rank

    async def _call(self, future: concurrent.futures.Future[Any], call: Any) -> None:
        assert self._idle is not None
        try:
            rank = await self._next_rank()
        except BrokenRank as error:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        lost = ""
        try:
            if not future.set_running_or_notify_cancel():
                return
            await aio.wrap(self._comm).send(call, rank, _CALL)
            succeeded, result = await aio.wrap(self._comm).recv(rank, _RESULT)
            if succeeded:
                future.set_result(result)
            elif succeeded is None:
                lost = f"has left the executor: {result}"
            else:
                raised, text = result
                raised.__cause__ = RemoteTraceback(text)
                future.set_exception(raised)
        except MPI.Exception as error:
            lost = f"is not reached any more: {error}"
        except Exception as error:  # the call does not pickle
            future.set_exception(error)
        finally:
            if lost:
                self._lose(rank)
                name = getattr(call[0], "__qualname__", repr(call[0]))
                future.set_exception(BrokenRank(f"rank {rank} {lost}; it ran {name}", rank))
            else:
                self._idle.put_nowait(rank)

    def _lose(self, rank: int) -> None:
        assert self._idle is not None
        self._others.remove(rank)
        if not self._others:
            self._idle.put_nowait(None)

    def submit(self, fn: Callable[..., _T], /, *args: Any,
               **kwargs: Any) -> concurrent.futures.Future[_T]:
        """Calls `fn` on an idle rank. A pending future can be cancelled, a running one cannot."""
        future: concurrent.futures.Future[_T] = concurrent.futures.Future()

        def begin() -> None:
            task = asyncio.ensure_future(self._call(future, (fn, args, kwargs)))
            self._open[task] = future
            task.add_done_callback(self._open.pop)

        with self._lock:
            if self._thread is None or self._loop is None:
                raise RuntimeError("cannot submit: the executor is not entered, or is shut down")
            self._loop.call_soon_threadsafe(begin)
        return future

    def map(self, fn: Callable[..., _T], *iterables: Iterable[Any],
            timeout: float | None = None, chunksize: int = 1,
            progress: Callable[[int, int], object] | None = None) -> Iterator[_T]:
        """Calls `fn` for each item, `chunksize` items in a message; results come in order.

        `progress(done, total)` is called after each chunk, whatever the order, in a thread of the
        executor, with numbers of items. `timeout` is in seconds, from this call on.
        """
        if chunksize < 1:
            raise ValueError("chunksize is 1 at least")
        items = list(zip(*iterables))
        chunks = [items[i:i + chunksize] for i in range(0, len(items), chunksize)]
        end = None if timeout is None else time.monotonic() + timeout
        done = 0

        def note(future: concurrent.futures.Future[list[_T]], size: int) -> None:
            nonlocal done
            if progress is None or future.cancelled():
                return
            done += size  # by the thread of the executor alone
            progress(done, len(items))

        futures = []
        for chunk in chunks:
            future = self.submit(_call_each, fn, chunk)
            future.add_done_callback(functools.partial(note, size=len(chunk)))
            futures.append(future)
        return _results(futures, end)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the other ranks' part once all calls are done."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._ended is None:
            return
        if cancel_futures:
            for future in list(self._open.values()):
                future.cancel()
        self._loop.call_soon_threadsafe(self._ended.set)
        if wait:
            thread.join()


def _results(futures: list[concurrent.futures.Future[list[_T]]],
             end: float | None) -> Iterator[_T]:
    futures.reverse()
    try:
        while futures:
            left = None if end is None else end - time.monotonic()
            yield from futures.pop().result(left)
    finally:  # after an exception, or without a reader
        for future in futures:
            future.cancel()


def _call_each(fn: Callable[..., _T], items: list[tuple[Any, ...]]) -> list[_T]:
    return [fn(*item) for item in items]
