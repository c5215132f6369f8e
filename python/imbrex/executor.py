# SPDX-License-Identifier: BSD-3-Clause
"""An executor over ranks, with the interface of concurrent.futures.

One rank submits, all others call functions. A thread of the submitting rank runs an event loop that
hands calls to idle ranks.
"""
from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from mpi4py import MPI

from imbrex import aio

__all__ = ["Executor", "RemoteTraceback"]

_T = TypeVar("_T")
_CALL, _RESULT = 1, 2


class RemoteTraceback(Exception):
    """The cause of an exception that a function has raised on another rank: its traceback."""


class Executor(concurrent.futures.Executor):
    """Calls functions on the other ranks of a communicator.

    Every rank makes one and enters it: ``with Executor(comm) as executor:``. On rank `root` the
    block runs and `executor` is the executor; on all others `executor` is None, and the block
    starts once the root has left its own. Functions, arguments and results must pickle. Raises
    ValueError on a communicator of one rank.
    """

    def __init__(self, comm: MPI.Intracomm, root: int = 0) -> None:
        if comm.Get_size() < 2:
            raise ValueError("Executor needs a communicator of two ranks at least: start the "
                             "program by mpirun -n 2 or more")
        self._comm = comm.Dup()
        self._root = root
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: asyncio.Queue[int] | None = None
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
        others = [rank for rank in range(comm.size) if rank != comm.rank]
        for rank in others:
            self._idle.put_nowait(rank)
        started.set()
        await self._ended.wait()
        while self._open:
            await asyncio.gather(*self._open)
        for rank in others:
            await comm.send(None, rank, _CALL)
        self._comm.Free()

    async def _call(self, future: concurrent.futures.Future[Any], call: Any) -> None:
        assert self._idle is not None
        comm = aio.wrap(self._comm)
        rank = await self._idle.get()
        try:
            if not future.set_running_or_notify_cancel():
                return
            await comm.send(call, rank, _CALL)
            succeeded, result = await comm.recv(rank, _RESULT)
            if succeeded:
                future.set_result(result)
            else:
                error, text = result
                error.__cause__ = RemoteTraceback(text)
                future.set_exception(error)
        except Exception as error:  # the call does not pickle
            future.set_exception(error)
        finally:
            self._idle.put_nowait(rank)

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
            timeout: float | None = None, chunksize: int = 1) -> Iterator[_T]:
        """Calls `fn` for each item, `chunksize` items in a message; results come in order."""
        if chunksize < 1:
            raise ValueError("chunksize is 1 at least")
        items = list(zip(*iterables))
        chunks = [items[i:i + chunksize] for i in range(0, len(items), chunksize)]
        parts = super().map(_call_each, [fn] * len(chunks), chunks, timeout=timeout)
        return itertools.chain.from_iterable(parts)

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


def _call_each(fn: Callable[..., _T], items: list[tuple[Any, ...]]) -> list[_T]:
    return [fn(*item) for item in items]
