# SPDX-License-Identifier: BSD-3-Clause
"""Ends all ranks if one rank ends by an uncaught exception, or by sys.exit() with an error.

Otherwise the failed rank would wait in MPI_Finalize for ranks that wait for its messages. Knows
mpi4py and the ways in which Python ends, and nothing of event loops.
"""
from __future__ import annotations

import _sitebuiltins
import builtins
import os
import signal
import sys
import threading
from types import TracebackType
from typing import Any, NoReturn

_process = 0  # that has installed; a child of fork() is no rank
_aborts = False
_code_of: Any = SystemExit.code


def is_aborting() -> bool:
    """Returns whether this rank ends the job when the interpreter has ended."""
    return _aborts


def install() -> None:
    """Replaces sys.excepthook, sys.exit, exit and quit. Each goes on to what was there before."""
    global _process
    _process = os.getpid()
    sys.excepthook = _chained_to(sys.excepthook)
    sys.exit = _exit
    _sitebuiltins.SystemExit = _Exit  # type: ignore[attr-defined]  # what exit() and quit() raise


def _mpi_with_others() -> Any:
    """Returns mpi4py.MPI if this process is a rank beside others, and MPI runs; else None."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or os.getpid() != _process or not mpi.Is_initialized() or mpi.Is_finalized():
        return None
    is_alone = (mpi.COMM_WORLD.Get_size() == 1 and
                mpi.Comm.Get_parent() == mpi.COMM_NULL)
    return None if is_alone else mpi


# ---- an uncaught exception -----------------------------------------------------------------------

def _chained_to(before: Any) -> Any:
    def hook(kind: type[BaseException], error: BaseException,
             trace: TracebackType | None) -> None:
        try:
            before(kind, error, trace)
        finally:
            goes_on = sys.flags.interactive or sys.flags.inspect or hasattr(sys, "ps1")
            mpi = None if goes_on else _mpi_with_others()
            if mpi is not None:
                _flush()
                # At once: threads of this program may wait for other ranks.
                mpi.COMM_WORLD.Abort(
                    signal.SIGINT + 128 if issubclass(kind, KeyboardInterrupt) else 1)

    return hook


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # closed, or None


# ---- sys.exit() ----------------------------------------------------------------------------------

class _Exit(SystemExit):
    """A SystemExit that notices the end of the interpreter.

    The interpreter reads `code` where no Python code runs any more, if nobody has caught the
    exception. A SystemExit is caught often, so its begin says nothing.
    """

    @property
    def code(self) -> Any:
        code = _code_of.__get__(self)
        if sys._getframe().f_back is None:
            _abort_at_end(code)
        return code

    @code.setter
    def code(self, value: Any) -> None:
        _code_of.__set__(self, value)

    def __reduce__(self) -> Any:
        return SystemExit, self.args


_Exit.__name__ = _Exit.__qualname__ = "SystemExit"
_Exit.__module__ = builtins.__name__


def _exit(status: Any = None, /) -> NoReturn:
    """Exits the interpreter by raising SystemExit(status).

    imbrex: a status other than 0 and None ends all ranks, as `python -m mpi4py` does.
    """
    # threading knows only SystemExit itself as the silent end of a thread.
    is_main = threading.current_thread() is threading.main_thread()
    raise (_Exit if is_main else SystemExit)(*(() if status is None else (status,)))


def _abort_at_end(code: Any) -> None:
    """mpi4py calls MPI_Abort in the place of MPI_Finalize, behind threads and atexit's calls."""
    global _aborts
    mpi = _mpi_with_others()
    status = code if isinstance(code, int) else 0 if code is None else 1
    if mpi is not None and status != 0:
        _aborts = True
        mpi._set_abort_status(status)
