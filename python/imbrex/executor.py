# SPDX-License-Identifier: BSD-3-Clause
"""An executor over ranks, with the interface of concurrent.futures.

One rank submits, all others call functions. A thread of the submitting rank runs an event loop that
hands calls to idle ranks, the oldest call first.
"""
from __future__ import annotations

import asyncio
import atexit
import collections
import concurrent.futures
import functools
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from mpi4py import MPI

from imbrex import _end, aio

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

    Calls, and the chunks of `map`, begin in the order of submission: an idle rank gets the oldest
    call that waits. Calls on several ranks run at the same time, and may end in any order.

    If the block raises an exception, the calls that wait are cancelled, and the exception goes on
    at once, without a wait for the calls that run.

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
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # guards the next two
        self._waiting: collections.deque[_Call] = collections.deque()  # the oldest call first
        self._is_shut_down = False
        # The rest belongs to the thread of the executor.
        self._running: dict[_Call, asyncio.Task[None]] = {}
        self._others: list[int] = []  # ranks that have not left
        self._idle: collections.deque[int] = collections.deque()
        self._ended: asyncio.Event | None = None

    def __enter__(self) -> Executor | None:  # type: ignore[override]
        if self._comm.Get_rank() != self._root:
            asyncio.run(self._serve())
            return None
        started: concurrent.futures.Future[None] = concurrent.futures.Future()
        # A daemon, so that a rank that ends by an error need not wait for calls of other ranks.
        self._thread = threading.Thread(target=self._run_loop, args=(started,),
                                        name="imbrex.Executor", daemon=True)
        atexit.register(self._join_at_exit)
        self._thread.start()
        started.result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        # An exception goes on at once: a running call may wait for a message of this rank.
        self.shutdown(wait=error is None, cancel_futures=error is not None)

    # ---- the other ranks ---------------------------------------------------------------------

    async def _serve(self) -> None:
        comm = aio.wrap(self._comm)
        while True:
            try:
                call = await comm.recv(self._root, _CALL)
            except MPI.Exception:
                raise
            except Exception as error:
                answer = _failed(comm, error)  # the call does not unpickle on this rank
            else:
                if call is None:
                    break
                try:
                    function, arguments, named = call
                    answer = (True, function(*arguments, **named))
                except Exception as error:
                    answer = _failed(comm, error)
                except BaseException as error:  # this rank leaves
                    await comm.send((None, repr(error)), self._root, _RESULT)
                    self._comm.Free()
                    if isinstance(error, SystemExit):  # the others go on: _end has no part in it
                        raise SystemExit(*error.args) from error
                    raise
            try:
                await comm.send(answer, self._root, _RESULT)
            except Exception as error:  # it does not pickle
                text = f"\nOn rank {comm.rank}: the result does not pickle: {error!r}"
                await comm.send((False, (TypeError(text.strip()), text)), self._root, _RESULT)
        self._comm.Free()

    # ---- the root ----------------------------------------------------------------------------

    def _run_loop(self, started: concurrent.futures.Future[None]) -> None:
        try:
            asyncio.run(self._lead(started))
        except BaseException as error:
            if not started.done():  # __enter__ raises the error
                started.set_exception(error)
                return
            for call in [*self._running, *self._take_waiting()]:
                if not call.future.done():
                    call.future.set_exception(error)
            raise

    async def _lead(self, started: concurrent.futures.Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        comm = aio.wrap(self._comm)
        self._others = [rank for rank in range(comm.size) if rank != comm.rank]
        self._idle.extend(self._others)
        started.set_result(None)
        await self._ended.wait()
        for rank in self._others:
            await comm.send(None, rank, _CALL)
        self._comm.Free()

    def _hand_out(self) -> None:
        """Gives the oldest calls to the idle ranks. Calls thus begin in the order of submission."""
        assert self._loop is not None and self._ended is not None
        while (call := self._next_call()) is not None:
            if not call.future.set_running_or_notify_cancel():
                continue
            if self._others:
                self._running[call] = self._loop.create_task(
                    self._run(call, self._idle.popleft()))
            else:
                call.future.set_exception(BrokenRank(
                    "no rank of the executor is left: all have left it", -1))
        with self._lock:
            has_ended = self._is_shut_down and not self._waiting and not self._running
        if has_ended:
            self._ended.set()

    def _next_call(self) -> _Call | None:
        """Returns the oldest call if a rank is idle, or if no rank is left; else None."""
        if self._others and not self._idle:
            return None
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    async def _run(self, call: _Call, rank: int) -> None:
        future = call.future
        lost = ""
        try:
            await aio.wrap(self._comm).send(call.parts, rank, _CALL)
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
        except Exception as error:  # the call does not pickle, or the result does not unpickle
            future.set_exception(error)
        finally:
            if lost:
                self._others.remove(rank)
                name = getattr(call.parts[0], "__qualname__", repr(call.parts[0]))
                future.set_exception(BrokenRank(f"rank {rank} {lost}; it ran {name}", rank))
            else:
                self._idle.append(rank)
            del self._running[call]
            self._hand_out()

    def submit(self, fn: Callable[..., _T], /, *args: Any,
               **kwargs: Any) -> concurrent.futures.Future[_T]:
        """Calls `fn` on the next idle rank, after all calls that were submitted before.

        Any thread. A pending future can be cancelled, a running one cannot.
        """
        future: concurrent.futures.Future[_T] = concurrent.futures.Future()
        with self._lock:
            if self._loop is None or self._is_shut_down:
                raise RuntimeError("cannot submit: the executor is not entered, or is shut down")
            self._waiting.append(_Call(future, (fn, args, kwargs)))
            self._loop.call_soon_threadsafe(self._hand_out)
        return future

    def map(self, fn: Callable[..., _T], *iterables: Iterable[Any],
            timeout: float | None = None, chunksize: int = 1,
            progress: Callable[[int, int], object] | None = None) -> Iterator[_T]:
        """Calls `fn` for each item, `chunksize` items in a message; results come in order.

        The chunks begin in order, as calls of `submit` do.

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
        """Ends the other ranks' part once all calls are done.

        Any thread. `cancel_futures` cancels the calls that wait; `wait` waits for the others. A
        program that ends without an error waits for them too.
        """
        with self._lock:
            is_first, self._is_shut_down = not self._is_shut_down, True
        for call in self._take_waiting() if cancel_futures else ():
            call.future.cancel()
            call.future.set_running_or_notify_cancel()  # tells who waits for it
        if self._thread is None or self._loop is None:
            return
        if is_first:
            self._loop.call_soon_threadsafe(self._hand_out)
        if wait:
            self._thread.join()
            atexit.unregister(self._join_at_exit)

    def _take_waiting(self) -> list[_Call]:
        with self._lock:
            calls = list(self._waiting)
            self._waiting.clear()
        return calls

    def _join_at_exit(self) -> None:
        if self._thread is not None and not _end.is_aborting():
            self._thread.join()


class _Call:
    """A call that waits or runs."""

    def __init__(self, future: concurrent.futures.Future[Any],
                 parts: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> None:
        self.future = future
        self.parts = parts


def _failed(comm: aio.Comm, error: Exception) -> tuple[bool, Any]:
    """The answer for a call that has raised `error`. REQUIRES: the error is being handled."""
    return False, (error, f"\nOn rank {comm.rank}:\n{traceback.format_exc()}")


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
