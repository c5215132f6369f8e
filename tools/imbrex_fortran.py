# SPDX-License-Identifier: BSD-3-Clause
"""The Fortran modules `imbrex` and `imbrex_mpi` for imbrex-fort, and what its compiler is told.

A compiler reads only modules of its own kind and version. So the modules are installed as source,
and compiled when imbrex-fort first runs a compiler: into the folder that --modules=DIR names, or
into one of the user's cache. A stamp there says for which compiler and which source they were made.
"""
import hashlib
import os
import pathlib
import subprocess
import tempfile

from imbrex_errors import CommandError

HERE = pathlib.Path(__file__).resolve().parent
SOURCE_FOLDERS = (HERE / "fortran", HERE.parent / "src/fortran")  # installed; the source
SOURCES = ("imbrex.f90", "imbrex_mpi.f90")
LIBRARY = "libimbrex_fortran.a"
STAMP = "imbrex-modules.txt"


def version_of(compiler):
    """The text of `compiler --version`, by which compilers are told apart; empty if there is
    none."""
    try:
        said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
    except OSError:
        return ""
    return said.stdout + said.stderr


def options_for(version, table):
    """Options that give each task its own local variables; `table` is by texts of versions."""
    return next((options for text, options in table.items() if text in version), [])


def modules(compiler, version, options, folder):
    """The folder with the modules for this compiler. They are compiled if they are not there;
    `folder` may be None: then it is one of the user's cache."""
    sources = next((place for place in SOURCE_FOLDERS if (place / SOURCES[0]).is_file()), None)
    if sources is None:
        raise CommandError(f"there is no {SOURCES[0]} in {SOURCE_FOLDERS[0]}: is imbrex installed "
                           "as a whole?")
    texts = [(sources / name).read_bytes() for name in SOURCES]
    digest = hashlib.sha256(b"\0".join([version.encode(), repr(options).encode(), *texts]))
    stamp = digest.hexdigest()
    folder = pathlib.Path(folder) if folder else cache() / f"fortran-{stamp[:16]}"
    try:
        if (folder / STAMP).is_file() and (folder / STAMP).read_text(encoding="utf-8") == stamp:
            return folder
        compile_into(folder, compiler, options, sources, stamp)
    except OSError as error:
        raise CommandError(f"{error.filename or folder}: {error.strerror}: the modules `imbrex` "
                           "and `imbrex_mpi` are not there; --modules=DIR puts them elsewhere"
                           ) from None
    return folder


def cache():
    named = os.environ.get("XDG_CACHE_HOME", "")
    return pathlib.Path(named if os.path.isabs(named) else os.path.expanduser("~/.cache"),
                        "imbrex")


def compile_into(folder, compiler, options, sources, stamp):
    """Each file is put in place as a whole, the stamp last, so several commands may do this."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as made:
        run([compiler, *options, "-O2", "-fPIC", "-c", *(str(sources / name) for name in SOURCES)],
            made)
        objects = [name.replace(".f90", ".o") for name in SOURCES]
        run(["ar", "crs", LIBRARY, *objects], made)
        (pathlib.Path(made) / STAMP).write_text(stamp, encoding="utf-8")
        names = sorted(set(os.listdir(made)) - set(objects), key=lambda name: name == STAMP)
        for name in names:
            os.replace(os.path.join(made, name), folder / name)


def run(command, folder):
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if said.returncode != 0:
        raise CommandError(f"{' '.join(command)} failed:\n{said.stdout}{said.stderr}")
