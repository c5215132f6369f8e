# SPDX-License-Identifier: BSD-3-Clause
"""imbrex for Python: ``await`` on MPI, beside mpi4py.

``import imbrex`` loads the library for the process's MPI. MPI need not be initialised yet, and may
be; ``imbrex.aio`` has the calls.
"""
from imbrex import _library

__all__ = ["library_path"]
__version__ = "0.1.0"


def library_path() -> str:
    """Returns the path of the loaded libimbrex_mpi, a file name."""
    return _library.load().path


_library.load()
