# SPDX-License-Identifier: BSD-3-Clause
"""Finds libimbrex_mpi for the process's MPI, loads it, and attaches it (imbrex/continue.h).

Knows ctypes and mpi4py's name of its MPI, and nothing of event loops.
"""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent
# In a wheel, in an install prefix (lib/imbrex/python/imbrex), in the tree that was built.
_PLACES = (_HERE / "lib", _HERE.parent.parent.parent, _HERE.parent.parent / "build" / "lib")


class Library:
    """The functions of imbrex/continue.h that Python calls."""

    def __init__(self, path: str, handle: ctypes.CDLL) -> None:
        self.path = path
        self.intercepts = True  # mpi4py's calls go through the library
        pointer, number, tag = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
        self.attach = handle.imbrex_attach
        self.open = handle.imbrex_queue_open
        self.open.argtypes = [ctypes.POINTER(pointer), ctypes.POINTER(number)]
        self.continue_to = handle.imbrex_continue_to
        self.continue_to.argtypes = [pointer, pointer, tag]
        # Calls no MPI and waits for nothing, so it keeps the lock of the interpreter.
        short = ctypes.PYFUNCTYPE(number, pointer, number, pointer)
        self.take = short(("imbrex_queue_take", handle))
        self.poll = handle.imbrex_queue_poll
        self.poll.argtypes = [pointer, number, number, pointer]
        self.cancel = handle.imbrex_queue_cancel
        self.cancel.argtypes = [pointer, tag]
        self.close = handle.imbrex_queue_close
        self.close.argtypes = [pointer]
        self._mprobe = handle.imbrex_mprobe_to
        self._message = handle.imbrex_message
        self._message.restype = ctypes.c_char_p

    def mprobe_to(self, queue: int | None, source: int, message_tag: int,
                  comm: "ctypes._SimpleCData[int]", tag: int) -> int:
        """imbrex_mprobe_to; `comm` is the handle, as wide as the MPI has it."""
        code: int = self._mprobe(ctypes.c_void_p(queue), ctypes.c_int(source),
                                 ctypes.c_int(message_tag), comm, ctypes.c_uint64(tag))
        return code

    def message(self) -> str:
        """imbrex_message(): why the last call of this thread has failed."""
        text: bytes = self._message()
        return text.decode(errors="replace")


def _mpi_of_process() -> str | None:
    """Tells from the process and its launcher which MPI it uses; None where nothing tells."""
    chosen = os.environ.get("MPI4PY_MPIABI", "")
    if chosen:
        return {"impi": "mpich", "mpiabi": "abi"}.get(chosen, chosen)
    if "mpi4py.MPI" in sys.modules:
        version = sys.modules["mpi4py.MPI"].Get_library_version()
        return "openmpi" if "Open MPI" in version else "mpich"
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        return "openmpi"
    if "PMI_SIZE" in os.environ or "PMI_RANK" in os.environ:
        return "mpich"
    return None


def _find() -> list[str]:
    """The paths of the libraries for the process's MPI; where nothing tells which, of those that
    load their MPI themselves, Open MPI's first."""
    chosen = os.environ.get("IMBREX_LIBRARY")
    if chosen:
        return [chosen]
    mpi = _mpi_of_process()
    # In a wheel the name without a version is a script for the linker.
    name = f"libimbrex_mpi_{mpi or '*'}.so.*"
    for place in _PLACES:
        found = sorted(map(str, place.glob(name)), reverse=True)
        if found:
            return [path for path in found if mpi or "_mpi_abi." not in path] or found
    places = ", ".join(map(str, _PLACES))
    raise ImportError(f"imbrex: there is no {name} in {places}: set IMBREX_LIBRARY to its path")


def _open() -> Library:
    """Loads the first library whose MPI is on this machine."""
    errors = []
    for path in _find():
        try:
            return Library(path, ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
        except OSError as error:
            errors.append(f"{path} cannot be loaded: {error}.")
    raise ImportError("\n".join([
        f"imbrex: {errors[0]} It needs the MPI that it was built for; IMBREX_LIBRARY names another "
        "libimbrex_mpi", *errors[1:]]))


def _is_initialised(process: ctypes.CDLL) -> bool:
    flag = ctypes.c_int()
    process.MPI_Initialized(ctypes.byref(flag))
    return flag.value != 0


def _preloaded() -> Library | None:
    process = ctypes.CDLL(None)
    if hasattr(process, "imbrex_queue_open"):
        return Library("preloaded", process)
    # libimbrex_preload.so has the calls of MPI, and hands them to the library that is loaded here.
    chooses = hasattr(process, "imbrex_preload_next")
    if hasattr(process, "MPI_Init") and not chooses and not _is_initialised(process):
        raise ImportError(
            "imbrex: the MPI library is already in the process, in front of imbrex: import imbrex "
            "before the module that loads MPI, or start Python with LD_PRELOAD=libimbrex_mpi.so")
    return None


@functools.lru_cache(maxsize=None)
def load() -> Library:
    """Loads the library once. MPI calls of modules that are loaded later go through it."""
    library = _preloaded()
    if library is None:
        library = _open()
        # The calls of an mpi4py that was loaded before are those of the MPI.
        library.intercepts = "mpi4py.MPI" not in sys.modules
    if "mpi4py.MPI" not in sys.modules:
        attach(library)
    return library


def attach(library: Library) -> None:
    """imbrex_attach. Before MPI_Init at once; afterwards it is collective."""
    # The main thread stands in the event loop: another one looks after MPI.
    os.environ.setdefault("IMBREX_WORKERS", "2")
    if library.attach() != 0:
        raise RuntimeError(library.message())
