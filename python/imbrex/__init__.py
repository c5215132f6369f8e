# SPDX-License-Identifier: BSD-3-Clause
"""imbrex for Python: ``await`` on MPI, beside mpi4py.

``import imbrex`` loads the library for the process's MPI. MPI need not be initialised yet, and may
be; ``imbrex.aio`` has the calls.
"""
from typing import TYPE_CHECKING, Any

from imbrex import _library

if TYPE_CHECKING:
    from imbrex.executor import Executor as Executor

__all__ = ["Executor", "library_path"]
__version__ = "0.1.0"


def library_path() -> str:
    """Returns the path of the loaded libimbrex_mpi, a file name."""
    return _library.load().path


def __getattr__(name: str) -> Any:
    if name == "Executor":  # late, since it imports mpi4py.MPI, which initialises MPI
        from imbrex.executor import Executor

        return Executor
    raise AttributeError(f"module 'imbrex' has no attribute {name!r}")


_library.load()
