# SPDX-License-Identifier: BSD-3-Clause
"""One completion queue for each event loop: hands completions to the coroutines that wait.

Thread safety: a hub belongs to the thread of its loop. Other threads call `fail_all` only.
"""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from imbrex import _library

_HANDLE_BYTES: int = MPI._sizeof(MPI.Request)
_STATUS_BYTES: int = MPI._sizeof(MPI.Status)
_Handle: Any = ctypes.c_void_p if _HANDLE_BYTES == 8 else ctypes.c_int
_BATCH = 256
_forked = False
_counts = {"entries": 0, "completions": 0}


class _Completion(ctypes.Structure):
    """struct imbrex_completion; the status has the MPI's size."""

    _fields_ = [("tag", ctypes.c_uint64), ("code", ctypes.c_int),
                ("status", ctypes.c_int * (_STATUS_BYTES // 4)), ("message", _Handle)]


if _STATUS_BYTES == 24:  # Open MPI's MPI_Status, which has a member of 8 bytes
    class _Wide(ctypes.Structure):
        _fields_ = [("tag", ctypes.c_uint64), ("code", ctypes.c_int),
                    ("status", ctypes.c_uint64 * (_STATUS_BYTES // 8)), ("message", _Handle)]

    _Completion = _Wide  # type: ignore[assignment,misc]


class Entry:
    """One operation that is under way. `keep` holds its buffers until it is complete."""

    __slots__ = ("tag", "done", "error", "status", "message", "keep", "wake", "orphan")

    def __init__(self, tag: int, keep: object) -> None:
        self.tag = tag
        self.done = False
        self.error: BaseException | None = None
        self.status: MPI.Status | None = None
        self.message: MPI.Message | None = None
        self.keep = keep
        self.wake: Callable[[], None] | None = None
        # Called with a late message of a probe that nobody waits for any more.
        self.orphan: Callable[[Entry], None] | None = None

    def complete(self) -> None:
        self.done = True
        self.keep = None
        wake, self.wake = self.wake, None
        if wake is not None:
            wake()
        elif self.orphan is not None:
            self.orphan(self)

    def result(self) -> MPI.Status:
        if self.error is not None:
            raise self.error
        assert self.status is not None
        return self.status


class _Asyncio:
    """How coroutines of asyncio and uvloop wait."""

    def __init__(self, drain: Callable[[], None], descriptor: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(descriptor, drain)

    async def wait(self, entry: Entry) -> None:
        future = self.loop.create_future()

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        entry.wake = wake
        try:
            await future
        finally:
            entry.wake = None

    async def wait_to_the_end(self, entry: Entry) -> None:
        while not entry.done:
            with contextlib.suppress(asyncio.CancelledError):
                await self.wait(entry)

    def soon(self, function: Callable[[], None]) -> None:
        self.loop.call_soon_threadsafe(function)

    def has_ended(self) -> bool:
        return self.loop.is_closed()


class _Trio:
    """How coroutines of trio wait. A system task watches the descriptor."""

    def __init__(self, drain: Callable[[], None], descriptor: int) -> None:
        import trio

        self.trio = trio
        self.token = trio.lowlevel.current_trio_token()

        self.ended = False

        async def watch() -> None:
            try:
                while True:
                    await trio.lowlevel.wait_readable(descriptor)
                    drain()
            finally:
                self.ended = True

        trio.lowlevel.spawn_system_task(watch)

    async def wait(self, entry: Entry) -> None:
        trio = self.trio
        task = trio.lowlevel.current_task()

        def abort(_: object) -> Any:
            entry.wake = None
            return trio.lowlevel.Abort.SUCCEEDED

        entry.wake = lambda: trio.lowlevel.reschedule(task)
        await trio.lowlevel.wait_task_rescheduled(abort)

    async def wait_to_the_end(self, entry: Entry) -> None:
        with self.trio.CancelScope(shield=True):
            while not entry.done:
                await self.wait(entry)

    def soon(self, function: Callable[[], None]) -> None:
        self.token.run_sync_soon(function)

    def has_ended(self) -> bool:
        return self.ended


class Hub:
    """The queue of one loop."""

    def __init__(self, backend: type[_Asyncio] | type[_Trio]) -> None:
        self._library = _library.load()
        self._queue = ctypes.c_void_p()
        descriptor = ctypes.c_int()
        if self._library.open(ctypes.byref(self._queue), ctypes.byref(descriptor)) != 0:
            raise OSError("imbrex: no completion queue; standard error says why")
        self._entries: dict[int, Entry] = {}
        self._next = 0
        self._batch = (_Completion * _BATCH)()
        self._backend = backend(self._on_readable, descriptor.value)
        self.has_ended = self._backend.has_ended

    # ---- begin -------------------------------------------------------------------------------

    def _begin(self, keep: object) -> Entry:
        self._next += 1
        entry = Entry(self._next, keep)
        self._entries[entry.tag] = entry
        return entry

    def _begun(self, entry: Entry, code: int) -> Entry:
        if code != 0:
            del self._entries[entry.tag]
            raise MPI.Exception(code)
        return entry

    def give(self, request: MPI.Request, keep: object) -> Entry:
        """Hands a request over, which is null afterwards."""
        entry = self._begin(keep)
        return self._begun(entry, self._library.continue_to(
            self._queue, MPI._addressof(request), entry.tag))

    def probe(self, comm: MPI.Comm, source: int, tag: int) -> Entry:
        """Begins a matched probe."""
        entry = self._begin(None)
        return self._begun(entry, self._library.mprobe_to(
            self._queue, source, tag, _Handle.from_address(MPI._addressof(comm)), entry.tag))

    def cancel(self, entry: Entry) -> None:
        """Asks MPI to take an operation back; the entry is done soon, cancelled or not."""
        if not entry.done and not MPI.Is_finalized():
            self._library.cancel(self._queue, entry.tag)
            self.drain()

    def cancel_soon(self, entry: Entry) -> None:
        """As cancel, when the loop turns: for callers that drain() has called."""
        self._backend.soon(lambda: self.cancel(entry))

    # ---- wait --------------------------------------------------------------------------------

    async def wait(self, entry: Entry) -> MPI.Status:
        """Waits for an operation that goes on if the waiting coroutine is cancelled."""
        if not entry.done:
            await self._backend.wait(entry)
        return entry.result()

    async def wait_or_take_back(self, entry: Entry) -> MPI.Status:
        """The same; if the coroutine is cancelled, so is the operation, unless it is complete."""
        try:
            return await self.wait(entry)
        except BaseException as error:
            if entry.error is error:
                raise
            self.cancel(entry)
            if isinstance(error, GeneratorExit):
                raise
            await self._backend.wait_to_the_end(entry)
            if entry.status is not None and not entry.status.Is_cancelled():
                return entry.status
            raise

    async def wait_to_the_end(self, entry: Entry) -> MPI.Status:
        """Waits also if the coroutine is cancelled meanwhile: the operation is about to end."""
        await self._backend.wait_to_the_end(entry)
        return entry.result()

    # ---- complete ----------------------------------------------------------------------------

    def _on_readable(self) -> None:
        _counts["entries"] += 1
        self.drain()

    def drain(self) -> None:
        """Takes what has arrived."""
        if _forked:
            return
        count: int = _BATCH
        while count == _BATCH:
            count = self._library.take(self._queue, _BATCH, ctypes.addressof(self._batch))
            _counts["completions"] += count
            for it in self._batch[:count]:
                entry = self._entries.pop(it.tag, None)
                if entry is not None:
                    self._complete(entry, it)

    @staticmethod
    def _complete(entry: Entry, it: _Completion) -> None:
        status = MPI.Status()
        ctypes.memmove(MPI._addressof(status), ctypes.addressof(it.status), _STATUS_BYTES)
        entry.status = status
        if it.code != 0:
            entry.error = MPI.Exception(it.code)
        else:
            message = MPI.Message()
            place = _Handle.from_address(MPI._addressof(message))
            place.value = it.message
            entry.message = message
        entry.complete()

    def fail_all(self) -> None:
        """MPI ends: whoever waits gets an exception. Any thread."""
        def fail() -> None:
            entries, self._entries = self._entries, {}
            for entry in entries.values():
                entry.orphan = None
                entry.error = RuntimeError(
                    "MPI.Finalize was called while this operation was open: await every operation, "
                    "or cancel it, before MPI.Finalize")
                entry.complete()

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._backend.soon(fail)

    def close(self) -> None:
        """Ends the queue: the loop has ended."""
        if _forked:
            return
        if not MPI.Is_finalized():
            for tag in list(self._entries):
                self._library.cancel(self._queue, tag)
        self._library.close(self._queue)


# ---- the hub of the running loop ----------------------------------------------------------------

_hubs: dict[Any, Hub] = {}  # by loop; an entry goes by `sweep` once the loop has ended
_lock = threading.Lock()
_ready = False


def sweep() -> None:
    """Takes back what loops that have ended have left open."""
    for key, hub in list(_hubs.items()):
        if hub.has_ended() and _hubs.pop(key, None) is hub:
            hub.close()


def _note_fork() -> None:
    global _forked
    _forked = True


def _prepare() -> None:
    """Once: MPI must be served, and its end noticed."""
    global _ready
    if _forked:
        raise RuntimeError("imbrex.aio cannot be used in a child of fork(): MPI does not know the "
                           "child. Start it by subprocess or multiprocessing's 'spawn'")
    if not MPI.Is_initialized():
        raise RuntimeError("MPI is not initialised: call MPI.Init_thread() before the first await")
    if MPI.Is_finalized():
        raise RuntimeError("MPI.Finalize has been called: nothing can be awaited any more")
    if _ready:
        return
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError("imbrex needs MPI.THREAD_MULTIPLE, and MPI was initialised with less: "
                           "leave mpi4py.rc.thread_level at 'multiple'")
    _library.attach(_library.load())

    def ends(comm: MPI.Comm, key: int, value: object) -> None:
        for hub in list(_hubs.values()):
            hub.fail_all()

    MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=ends), None)
    os.register_at_fork(after_in_child=_note_fork)
    _ready = True


def current() -> Hub:
    """The hub of the running loop; made at the first call."""
    key: Any
    backend: type[_Asyncio] | type[_Trio] = _Asyncio
    trio = sys.modules.get("trio")
    try:
        key = asyncio.get_running_loop()
    except RuntimeError:
        if trio is None:
            raise
        key = trio.lowlevel.current_root_task()
        backend = _Trio
    if _ready and not _forked:
        hub = _hubs.get(key)
        if hub is not None and not MPI.Is_finalized():
            return hub
    with _lock:
        _prepare()
        hub = _hubs.get(key)
        if hub is None:
            hub = Hub(backend)
            _hubs[key] = hub
            sweep()
    return hub
