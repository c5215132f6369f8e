# SPDX-License-Identifier: BSD-3-Clause
"""imbrex for Python: ``await`` on MPI, beside mpi4py.

``import imbrex`` loads the library for the process's MPI. MPI need not be initialised yet, and may
be; ``imbrex.aio`` has the calls.
"""
from typing import TYPE_CHECKING, Any

from imbrex import _end, _library

if TYPE_CHECKING:
    from imbrex.executor import BrokenRank as BrokenRank, Executor as Executor

__all__ = ["BrokenRank", "Executor", "library_path"]
__version__ = "0.1.0"


def library_path() -> str:
    """Returns the path of the loaded libimbrex_mpi, or "preloaded".

    >>> library_path() != ""
    True
    """
    return _library.load().path


def __getattr__(name: str) -> Any:
    if name in ("BrokenRank", "Executor"):  # late: mpi4py.MPI, which it imports, initialises MPI
        from imbrex import executor

        return getattr(executor, name)
    raise AttributeError(f"module 'imbrex' has no attribute {name!r}")


_library.load()
_end.install()
