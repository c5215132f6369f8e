# SPDX-License-Identifier: BSD-3-Clause
"""One completion queue for each event loop: hands completions to the coroutines that wait.

Thread safety: a hub belongs to the thread of its loop. Other threads call `fail_all` only, until
the loop has ended: then the hub belongs to the thread that sweeps.
"""
from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import os
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any

from mpi4py import MPI

from imbrex import _library

_HANDLE_BYTES: int = MPI._sizeof(MPI.Request)
_STATUS_BYTES: int = MPI._sizeof(MPI.Status)
_Handle: Any = ctypes.c_void_p if _HANDLE_BYTES == 8 else ctypes.c_int
_BATCH = 256
_ROUNDS = 16  # takes of one entry: then other callbacks of the loop have their turn
_LINGER_US = 10  # how long an entry waits for the next completion under traffic
_TRAFFIC_S = 0.0002  # between two entries, at most
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


# How `struct` reads a completion: tag, code, status, message.
_LAYOUT = struct.Struct("=Qi{}x{}s{}x{}".format(
    _Completion.status.offset - _Completion.code.offset - 4, _STATUS_BYTES,
    _Completion.message.offset - _Completion.status.offset - _STATUS_BYTES,
    "Q" if _HANDLE_BYTES == 8 else "i4x"))
assert _LAYOUT.size == ctypes.sizeof(_Completion)


class Entry:
    """One operation that is under way. `keep` holds its buffers until it is complete.

    An entry is awaitable under asyncio and uvloop, by one task at a time, and behaves as a future
    towards that task. One difference: a task that awaits it goes on within the callback that has
    found the completion, not in the next turn of the loop.
    """

    # Most entries keep these values, and need not set them.
    done = False
    error: BaseException | None = None
    # How the coroutine that waits goes on: a step of a task of asyncio, or a function.
    _step: Callable[[Entry], object] | None = None
    wake: Callable[[], None] | None = None
    # Called with a late message of a probe that nobody waits for any more.
    orphan: Callable[[Entry], None] | None = None
    _cancelled: asyncio.CancelledError | None = None
    _asyncio_future_blocking = False
    _status: MPI.Status | None = None
    _message: MPI.Message | None = None
    _context: contextvars.Context
    _raw_status: bytes
    _raw_message: int

    def __init__(self, tag: int, keep: object, loop: asyncio.AbstractEventLoop | None) -> None:
        self.tag = tag
        self.keep = keep
        self._loop = loop

    # ---- as asyncio's tasks use a future -----------------------------------------------------

    def __await__(self) -> Generator[Entry, None, None]:
        if not self.done:
            self._asyncio_future_blocking = True
            yield self

    def get_loop(self) -> asyncio.AbstractEventLoop | None:
        return self._loop

    def add_done_callback(self, step: Callable[[Entry], object], *,
                          context: contextvars.Context) -> None:
        self._step = step
        self._context = context

    def cancel(self, msg: object = None) -> bool:
        """The waiting task is cancelled, the operation is not. False: it is complete."""
        if self.done or self._step is None:
            return False
        self._cancelled = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self._step_soon()
        return True

    def result(self) -> None:
        if self._cancelled is not None:
            error, self._cancelled = self._cancelled, None
            raise error

    def _step_soon(self) -> None:
        step, self._step = self._step, None
        assert self._loop is not None and step is not None
        self._loop.call_soon(step, self, context=self._context)

    # ---- completion --------------------------------------------------------------------------

    def complete(self) -> None:
        """Who waits goes on, at the latest in the next turn of the loop."""
        self.done = True
        self.keep = None
        if self._step is not None:
            self._step_soon()
        elif self.wake is not None:
            wake, self.wake = self.wake, None
            wake()
        elif self.orphan is not None:
            self.orphan(self)

    def step(self) -> None:
        """The waiting task goes on now. REQUIRES: complete; no task runs."""
        step, self._step = self._step, None
        if step is not None:
            self._context.run(step, self)

    def arrive(self, code: int, status: bytes, message: int) -> bool:
        """The operation is complete, as the queue says. True if a task is to go on by step()."""
        self._raw_status = status
        self._raw_message = message
        if code != 0:
            self.error = MPI.Exception(code)
        if self._step is None:
            self.complete()
            return False
        self.done = True
        self.keep = None
        return True

    def leave_to(self, orphan: Callable[[Entry], None]) -> None:
        """Nobody waits any more; a late message goes to `orphan`."""
        self._step = self.wake = None
        self.orphan = orphan

    def hold(self, status: MPI.Status, message: MPI.Message) -> None:
        """The operation is complete: a message that has been found otherwise."""
        self._status, self._message, self.done = status, message, True

    @property
    def status(self) -> MPI.Status:
        """REQUIRES: complete, without an error."""
        if self._status is None:  # few who wait for a send ask for it
            self._status = MPI.Status()
            ctypes.memmove(MPI._addressof(self._status), self._raw_status, _STATUS_BYTES)
        return self._status

    @property
    def message(self) -> MPI.Message:
        """The message of a probe. REQUIRES: complete, without an error."""
        if self._message is None:
            self._message = MPI.Message()
            _Handle.from_address(MPI._addressof(self._message)).value = self._raw_message
        return self._message

    def outcome(self) -> MPI.Status:
        if self.error is not None:
            raise self.error
        return self.status

    def is_cancelled(self) -> bool:
        """Whether MPI has taken the operation back."""
        return self.done and self.error is None and self.status.Is_cancelled()


class _Asyncio:
    """How coroutines of asyncio and uvloop wait."""

    def __init__(self, drain: Callable[[], None], descriptor: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(descriptor, drain)

    @staticmethod
    def wait(entry: Entry) -> Awaitable[None]:
        return entry

    async def wait_to_the_end(self, entry: Entry) -> None:
        while not entry.done:
            with contextlib.suppress(asyncio.CancelledError):
                await entry

    def soon(self, function: Callable[[], None]) -> None:
        self.loop.call_soon_threadsafe(function)

    def has_ended(self) -> bool:
        return self.loop.is_closed()


class _Trio:
    """How coroutines of trio wait. A system task watches the descriptor."""

    loop = None

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
        queue = ctypes.c_void_p()
        descriptor = ctypes.c_int()
        if self._library.open(ctypes.byref(queue), ctypes.byref(descriptor)) != 0:
            raise OSError("imbrex: no completion queue; standard error says why")
        self._queue = queue.value
        self._entries: dict[int, Entry] = {}
        self._next = 0
        self._closed = False  # the queue is gone
        self._entered = 0.0  # the end of the last entry
        self._batch = bytearray(_BATCH * _LAYOUT.size)
        self._batch_address = ctypes.addressof(ctypes.c_char.from_buffer(self._batch))
        self._backend = backend(self._on_readable, descriptor.value)
        self.loop = self._backend.loop
        self.has_ended = self._backend.has_ended
        self.wait_for = self._backend.wait  # until the operation is complete
        # imbrex holds messages that MPI's own receives would overtake.
        self.probes_first = not self._library.intercepts

    # ---- begin -------------------------------------------------------------------------------

    def _begin(self, keep: object) -> Entry:
        self._next = tag = self._next + 1
        self._entries[tag] = entry = Entry(tag, keep, self.loop)
        return entry

    def _begun(self, entry: Entry, code: int) -> Entry:
        if code != 0:
            del self._entries[entry.tag]
            raise RuntimeError(self._library.message())
        return entry

    def give(self, request: MPI.Request, keep: object) -> Entry:
        """Hands a request over, which is null afterwards."""
        entry = self._begin(keep)
        code = self._library.continue_to(self._queue, MPI._addressof(request), entry.tag)
        return entry if code == 0 else self._begun(entry, code)

    def probe(self, comm: MPI.Comm, source: int, tag: int) -> Entry:
        """Begins a matched probe."""
        entry = self._begin(None)
        return self._begun(entry, self._library.mprobe_to(
            self._queue, source, tag, _Handle.from_address(MPI._addressof(comm)), entry.tag))

    def cancel(self, entry: Entry) -> None:
        """Asks MPI to take an operation back; the entry is done soon, cancelled or not."""
        if not entry.done and not self._closed and not MPI.Is_finalized():
            self._library.cancel(self._queue, entry.tag)
            self.drain()

    def cancel_soon(self, entry: Entry) -> None:
        """As cancel, when the loop turns: for callers that drain() has called."""
        self._backend.soon(lambda: self.cancel(entry))

    # ---- wait --------------------------------------------------------------------------------

    async def wait(self, entry: Entry) -> MPI.Status:
        """Waits for an operation that goes on if the waiting coroutine is cancelled."""
        if not entry.done:
            await self.wait_for(entry)
        return entry.outcome()

    async def wait_or_take_back(self, entry: Entry) -> MPI.Status:
        """The same; if the coroutine is cancelled, so is the operation, unless it is complete."""
        try:
            if not entry.done:
                await self.wait_for(entry)
            return entry.outcome()
        except BaseException as error:
            if entry.error is error:
                raise
            self.cancel(entry)
            if isinstance(error, GeneratorExit):
                raise
            await self._backend.wait_to_the_end(entry)
            if entry.error is None and not entry.is_cancelled():
                return entry.status
            raise

    async def wait_to_the_end(self, entry: Entry) -> MPI.Status:
        """Waits also if the coroutine is cancelled meanwhile: the operation is about to end."""
        await self._backend.wait_to_the_end(entry)
        return entry.outcome()

    # ---- complete ----------------------------------------------------------------------------

    def _on_readable(self) -> None:
        """The loop has found the descriptor readable: no task runs.

        Tasks that go on here begin operations, which often complete soon. Where the last entry was
        not long ago, this entry therefore waits a little for the next completion, which costs less
        than a turn of the loop.
        """
        _counts["entries"] += 1
        if self.loop is None:  # the tasks of trio go on in its next turn
            self.drain()
            return
        now = time.perf_counter()
        linger_us = _LINGER_US if now - self._entered < _TRAFFIC_S else 0
        for _ in range(_ROUNDS):
            if not self._arrive(linger_us):
                break
        self._entered = time.perf_counter()

    def _arrive(self, linger_us: int) -> bool:
        """Takes what arrives, and lets the tasks that wait for it go on. False: nothing arrived."""
        before = _counts["completions"]
        waiting = self._complete(linger_us)
        waiting.reverse()
        try:
            while waiting:
                waiting.pop().step()
        finally:  # KeyboardInterrupt, in a task, ends the loop
            for entry in reversed(waiting):
                entry.complete()
        return _counts["completions"] != before

    def _complete(self, linger_us: int = 0) -> list[Entry]:
        """Completes what arrives. Returns the entries whose tasks go on by step()."""
        waiting = []
        for tag, code, status, message in self._take(linger_us):
            entry = self._entries.pop(tag, None)
            if entry is not None and entry.arrive(code, status, message):
                waiting.append(entry)
        return waiting

    def _take(self, linger_us: int = 0) -> Iterator[tuple[int, int, bytes, int]]:
        count: int = _BATCH
        while count == _BATCH and not _forked and not self._closed:
            if linger_us != 0:
                count = self._library.poll(self._queue, linger_us, _BATCH, self._batch_address)
            else:
                count = self._library.take(self._queue, _BATCH, self._batch_address)
            if count == 0:
                return
            _counts["completions"] += count
            yield from _LAYOUT.iter_unpack(self._batch[:count * _LAYOUT.size])

    def drain(self) -> None:
        """Takes what has arrived; tasks that wait for it go on in the next turn of the loop."""
        for entry in self._complete():
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

    def take_all_back(self) -> None:
        """The loop has ended: nobody waits any more."""
        if not MPI.Is_finalized():
            for tag in list(self._entries):
                self._library.cancel(self._queue, tag)

    def has_closed(self) -> bool:
        """Closes the queue of a loop that has ended, once MPI uses no buffer any more."""
        if _forked:
            return True
        for tag, *_ in self._take():
            self._entries.pop(tag, None)
        if self._entries and not MPI.Is_finalized():
            return False
        self._closed = True
        self._library.close(self._queue)
        return True


# ---- the hub of the running loop ----------------------------------------------------------------

_hubs: dict[Any, Hub] = {}  # by loop; an entry goes by `sweep` once the loop has ended
_ending: list[Hub] = []  # of loops that have ended, with operations open
_lock = threading.Lock()
_sweeping = threading.Lock()  # held by the thread that sweeps
_ready = False
_over = False  # MPI has ended, or this process is a child of fork()


def sweep() -> None:
    """Takes back what loops that have ended have left open. Any thread; one sweeps at a time."""
    # A finalizer may call this in a thread that sweeps, so no call waits: the next one sweeps.
    if not _sweeping.acquire(blocking=False):
        return
    try:
        for key, hub in list(_hubs.items()):
            if hub.has_ended():
                del _hubs[key]
                hub.take_all_back()
                _ending.append(hub)
        _ending[:] = [hub for hub in _ending if not hub.has_closed()]
    finally:
        _sweeping.release()


def _note_fork() -> None:
    global _forked, _over
    _forked = _over = True


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
        global _over
        _over = True
        for hub in list(_hubs.values()):
            hub.fail_all()

    MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=ends), None)
    os.register_at_fork(after_in_child=_note_fork)
    _ready = True


def current() -> Hub:
    """The hub of the running loop; made at the first call."""
    try:
        hub = _hubs.get(asyncio.get_running_loop())
    except RuntimeError:
        hub = None  # of trio, or none
    return hub if hub is not None and not _over else _make_current()


def _make_current() -> Hub:
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
    with _lock:
        _prepare()
        hub = _hubs.get(key)
        if hub is None:
            hub = Hub(backend)
            _hubs[key] = hub
            sweep()
    return hub
