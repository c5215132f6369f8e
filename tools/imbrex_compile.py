# SPDX-License-Identifier: BSD-3-Clause
"""imbrex-cc, imbrex-c++ and imbrex-fort: compilers that have imbrex's flags, as mpicc has MPI's."""
import os
import shlex
import sys

from imbrex_config import Build
from imbrex_errors import CommandError

LANGUAGES = {"imbrex-cc": ("cc", "C"), "imbrex-c++": ("c++", "C++"),
             "imbrex-fort": ("fort", "Fortran")}
WITHOUT_LINKING = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"}
HELP = """\
usage: {name} [OPTION...] [options and files of the compiler...]

Compiles and links programs in {language} with imbrex, as the MPI's own wrapper does with MPI.

options of {name}:
  --help         print this text and exit
  --show         print the command instead of running it
  --no-mpi       link a program without MPI
  --mpi=NAME     use this MPI (openmpi, mpich or abi), if imbrex was installed for several
  --tsan         link the variant of the libraries for ThreadSanitizer
{more}
All other words go to {compiler}, whose --help shows its options.
"""
HELP_FORTRAN = """\
  --modules=DIR  compile the modules `imbrex` and `imbrex_mpi` into DIR, unless DIR has them, and
                 use them (default: a folder of the user's cache). Without files to compile,
                 imbrex-fort only compiles the modules.
"""


class Asked:
    """The words of a command line: options of this wrapper, and words for the compiler."""

    def __init__(self, arguments):
        self.mpi, self.tsan, self.show, self.help, self.modules = "", False, False, False, None
        self.given = []
        for word in arguments:
            if word in ("--show", "-show"):
                self.show = True
            elif word == "--help":
                self.help = True
            elif word == "--no-mpi":
                self.mpi = None
            elif word.startswith("--mpi="):
                self.mpi = word[len("--mpi="):]
            elif word == "--tsan":
                self.tsan = True
            elif word.startswith("--modules="):
                self.modules = os.path.abspath(word[len("--modules="):])
            else:
                self.given.append(word)
        self.links = not WITHOUT_LINKING.intersection(self.given)
        self.has_files = any(not word.startswith("-") for word in self.given)


def compile_by(name, arguments):
    """Runs the wrapper `name`, one of LANGUAGES. Returns only where there is nothing to compile."""
    language, readable = LANGUAGES[name]
    asked = Asked(arguments)
    if asked.help:
        print(HELP.format(name=name, language=readable, compiler=wanted_compiler(asked, language),
                          more=HELP_FORTRAN if language == "fort" else ""), end="")
        return
    build = Build(asked.mpi, asked.tsan)
    compiler = build.compiler(language)
    before, behind = [], []
    if language == "fort" and (asked.has_files or asked.modules):
        before, behind = for_fortran(build, compiler, asked)
        if not asked.given:
            return
    knows_mpi = build.mpi is None or compiler in build.mpi["wrappers"].values()
    command = [compiler, *before, *(build.own_cflags() if knows_mpi else build.cflags())]
    if language == "c++" and not any(word.startswith("-std=") for word in asked.given):
        command.append("-std=c++20")
    # Before the user's own, among which the MPI's library may be; shared libraries may come first.
    if asked.links:
        command += build.own_libs() if knows_mpi else build.libs()
    command += asked.given + behind
    if asked.show:
        print(shlex.join(command))
        return
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise CommandError(f"{command[0]}: {error.strerror}") from None


def wanted_compiler(asked, language):
    """Its name for the help, which needs none."""
    try:
        return os.path.basename(Build(asked.mpi, asked.tsan).compiler(language))
    except CommandError:
        return "the compiler"


def for_fortran(build, compiler, asked):
    """Returns the words to put before the user's words, and behind them."""
    import imbrex_fortran
    version = imbrex_fortran.version_of(compiler)
    options = imbrex_fortran.options_for(version, build.core["fortran_options"])
    try:
        folder = imbrex_fortran.modules(compiler, version, options, asked.modules)
    except CommandError as error:
        if asked.modules:
            raise
        # Programs that do not use them are compiled all the same.
        print(f"imbrex-fort: warning: {error}", file=sys.stderr)
        return options, []
    library = [str(folder / imbrex_fortran.LIBRARY)] if asked.links else []
    return [*options, f"-I{folder}"], library
