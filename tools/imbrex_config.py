# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex config`, which prints flags for compilers and linkers; imbrex_compile.py passes the flags
to a compiler.

libimbrex_mpi must come before the MPI's library, and stay even if the linker drops libraries that
nothing has named so far. A line that was written by hand often misses one or the other, and the
program works until its tasks wait. CMake describes the build in files of share/imbrex/config/.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from imbrex_errors import CommandError

# The value of "mpi" in core.json where the user's mpicc decides, as in the wheel.
OF_MPICC = "mpicc"
SYSTEM_FOLDERS = ("/usr/lib", "/lib", "/usr/local/lib")
FORTRAN_COMPILERS = ("gfortran", "flang-new", "flang", "ifx", "nvfortran")


def add_to(commands):
    parser = commands.add_parser(
        "config", help="print flags for compilers and linkers, which imbrex-cc, imbrex-c++ and "
        "imbrex-fort also use",
        usage="imbrex config [options]",
        description="Prints flags for compilers and linkers, on one line. If imbrex was built with "
        "an MPI, the flags are for programs with MPI. The compilers imbrex-cc, imbrex-c++ and "
        "imbrex-fort use these flags, as mpicc uses MPI's; --show prints the command they run.")
    for name, text in (("cflags", "print flags for the compiler"),
                       ("libs", "print flags for the linker; they go before the MPI's own "
                        "libraries"),
                       ("prefix", "print the folder in which imbrex is installed"),
                       ("libdir", "print the folder of the libraries"),
                       ("includedir", "print the folder of the headers")):
        parser.add_argument(f"--{name}", dest="wanted", action="append_const", const=name,
                            help=text)
    parser.add_argument("--mpi", metavar="NAME", help="print flags for this MPI (openmpi, mpich "
                        "or abi), if imbrex was installed for several")
    parser.add_argument("--no-mpi", action="store_true",
                        help="print flags for programs without MPI")
    parser.add_argument("--tsan", action="store_true",
                        help="print flags of the variant for ThreadSanitizer")
    parser.set_defaults(run=run, parser=parser)


def run(options):
    if not options.wanted:
        options.parser.error("give one or more of --cflags, --libs, --prefix, --libdir, "
                             "--includedir")
    build = Build(None if options.no_mpi else options.mpi or "", options.tsan)
    print(" ".join(shlex.join(getattr(build, what)()) for what in options.wanted))


# ---- what was built ----------------------------------------------------------------------------

def find_folder():
    """The folder that says what was built: of the prefix or the build tree of this command."""
    here = pathlib.Path(__file__).resolve().parent
    folders = [here / "config", here.parent / "build/share/imbrex/config"]  # installed; the source
    command = shutil.which(sys.argv[0])
    if command:
        tree = pathlib.Path(os.path.abspath(command)).parent.parent
        folders.insert(1, tree / "share/imbrex/config")
    for folder in folders:
        if (folder / "core.json").is_file():
            return folder
    raise CommandError("there is no core.json, which CMake writes, beside this command: call it by "
                      "its path in the prefix where imbrex was installed, or in the build tree")


def find_program(name):
    """The path of a program behind a subcommand."""
    folder = find_folder()
    core = json.loads((folder / "core.json").read_text(encoding="utf-8"))
    root = pathlib.Path(os.path.normpath(folder.parent / core["prefix"]))
    program = root / core.get("libexecdir", "libexec/imbrex") / name
    if not program.is_file():
        raise CommandError(f"there is no {program}: this imbrex was built without it")
    return program


def version():
    """Of what was built; of the source, if nothing was."""
    try:
        return json.loads((find_folder() / "core.json").read_text(encoding="utf-8"))["version"]
    except CommandError:
        header = pathlib.Path(__file__).resolve().parent.parent / "include/imbrex/version.h"
        numbers = re.findall(r"VERSION_[A-Z]+ ([0-9]+)", header.read_text(encoding="utf-8")
                             if header.is_file() else "")
        return ".".join(numbers) or "of an unknown version"


class Build:
    """The core, and imbrex::mpi for one MPI if `mpi` is not None. The empty name selects the MPI
    that was built with the core, or the only MPI."""

    def __init__(self, mpi, tsan):
        folder = find_folder()
        self.core = json.loads((folder / "core.json").read_text(encoding="utf-8"))
        self.root = pathlib.Path(os.path.normpath(folder.parent / self.core["prefix"]))
        self.tsan = tsan
        self.mpi = None if mpi is None else self.choose(folder, mpi)
        self.folder = self.root / self.core["libdir"] / ("imbrex/tsan" if tsan else ".")
        if not (self.folder / "libimbrex.so").exists():
            raise CommandError(f"there is no {self.folder / 'libimbrex.so'}"
                              + (": this imbrex was built without the variant for ThreadSanitizer"
                                 if tsan else ""))

    def choose(self, folder, name):
        built = {path.stem[4:]: path for path in sorted(folder.glob("mpi-*.json"))}
        wanted = name or self.core["mpi"] or next(iter(built), "")
        if wanted == OF_MPICC:
            wanted = name = self.interface_of_mpicc()
        if wanted in built:
            return json.loads(built[wanted].read_text(encoding="utf-8"))
        if not name:
            return None  # without MPI
        raise CommandError(f"--mpi {name}: this imbrex has no imbrex::mpi for it; there is: "
                          f"{', '.join(built) or 'none'}")

    def interface_of_mpicc(self):
        """The binary interface of the MPI whose mpicc is in PATH; "" if there is no mpicc."""
        if not shutil.which("mpicc"):
            return ""
        question = self.root / self.core["libdir"] / "cmake/imbrex/imbrex_mpi_abi.c"
        said = subprocess.run(["mpicc", "-E", question], capture_output=True, text=True,
                              check=False)
        found = re.search("imbrex_abi *= *([a-z]+)", said.stdout)
        if not found:
            raise CommandError(f"the MPI of {shutil.which('mpicc')} has neither Open MPI's binary "
                               "interface, nor MPICH's, nor the standard's: put another mpicc "
                               f"first in PATH, or give --no-mpi\n{said.stderr}".rstrip())
        return found[1]

    def prefix(self):
        return [str(self.root)]

    def libdir(self):
        return [os.path.normpath(self.folder)]

    def includedir(self):
        return [str(self.root / self.core["includedir"])]

    def cflags(self):
        mpi = self.mpi or {"include": [], "options": []}
        return [*self.own_cflags(), *("-I" + folder for folder in mpi["include"]), *mpi["options"]]

    def libs(self):
        libraries = self.mpi["libraries"] if self.mpi else []
        return [*self.own_libs(*libraries),
                *rpath(os.path.dirname(library) for library in libraries)]

    def own_cflags(self):
        # CMake's imbrex::mpi gives an equal set: only the C interface of the MPI.
        mpi = ["-DOMPI_SKIP_MPICXX=1", "-DMPICH_SKIP_MPICXX=1"] if self.mpi else []
        tsan = ["-fsanitize=thread", "-g"] if self.tsan else []
        return ["-I" + self.includedir()[0], *mpi, *tsan]

    def own_libs(self, *others):
        """`others` come behind, and are kept too: all may stand before what needs them. The library
        of the MPI is kept where only the MPI's wrapper knows its folder."""
        others = others or (self.mpi or {}).get("kept", ())
        names = [f"-limbrex_mpi_{self.mpi['interface']}"] if self.mpi else []
        tsan = ["-fsanitize=thread"] if self.tsan else []
        return [*tsan, "-L" + self.libdir()[0], "-Wl,--push-state,--no-as-needed", *names,
                "-limbrex", *others, "-Wl,--pop-state", *rpath(self.libdir())]

    def compiler(self, language):
        """The MPI's wrapper, which knows the MPI's own flags, or a compiler."""
        wrapper = self.mpi["wrappers"].get(language) if self.mpi else None
        found = wrapper or self.core["compilers"].get(language)
        if not found and language == "fort" and not self.mpi:
            # imbrex may have been built where there was no compiler for Fortran.
            found = next(filter(None, map(shutil.which, FORTRAN_COMPILERS)), None)
        if not found:
            raise CommandError(f"there is no compiler wrapper for Fortran beside "
                               f"{self.mpi['wrappers']['cc']}" if self.mpi else
                               f"there is no compiler for Fortran: {', '.join(FORTRAN_COMPILERS)}")
        return found


def rpath(folders):
    """Returns flags for libraries that the dynamic linker would not find by itself."""
    wanted = dict.fromkeys(folder for folder in folders
                           if folder and not folder.startswith(SYSTEM_FOLDERS))
    return [f"-Wl,-rpath,{folder}" for folder in wanted]
