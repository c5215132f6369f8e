# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex run`: starts a program that exists with our libraries preloaded.

An MPI launcher is asked to hand the variables to the ranks (-x of Open MPI, -genv of MPICH's Hydra,
--export of srun) and does not get them itself.
"""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import imbrex_deaths
from imbrex_errors import CommandError

LAUNCHERS = re.compile(r"(mpirun|mpiexec|orterun|prterun|srun)([.-].*)?$")
# Of libraries of MPI: their name, and the binary interface that they stand for.
INTERFACES = ((r"libmpi_abi\.so", "abi"), (r"libmpi\.so\.40", "openmpi"),
              (r"libmpi(ch)?\.so\.(12|0)", "mpich"))
READABLE = {"openmpi": "Open MPI", "mpich": "MPICH", "abi": "MPI's standard ABI"}


# The table of the runtime's options: installed, and in the source.
HERE = pathlib.Path(__file__).resolve().parent
OPTION_TABLES = (HERE / "options.def", HERE.parent / "src/base/options.def")


def add_to(commands):
    parser = commands.add_parser(
        "run", help="start a program with imbrex under it: its OpenMP tasks, its MPI calls",
        usage="imbrex run [options] [--] command...",
        description="Starts a program that GCC compiled with -fopenmp on imbrex's libgomp.so.1, "
        "and under an MPI launcher (mpirun, mpiexec, srun), or if it uses MPI, with the "
        "libimbrex_mpi that fits its MPI. Variables like IMBREX_STALL_S and OMP_PLACES are handed "
        "on. When a rank dies it is named.")
    parser.add_argument("--policy", metavar="P", type=policy,
                        help="IMBREX_POLICY: which ready task runs first")
    parser.add_argument("--threads", type=positive, metavar="N", help="OMP_NUM_THREADS")
    parser.add_argument("--trace", metavar="DIR", help="IMBREX_TRACE: for `imbrex report DIR`")
    parser.add_argument("--summary", action="store_true",
                        help="IMBREX_SUMMARY: a table of times at the end")
    parser.add_argument("--no-mpi", action="store_true", help="leave the MPI calls alone")
    parser.add_argument("--libraries", metavar="DIR",
                        help="where libimbrex.so is; default: beside this command")
    parser.add_argument("command", nargs="...", metavar="command...")
    parser.set_defaults(run=run, parser=parser)


def policy(text):
    """A mistake is said here, once, and not by every rank when it has started."""
    for place in OPTION_TABLES:
        if not place.is_file():
            continue
        line = re.search(r'^IMBREX_OPTION\(POLICY,[^"]*"[^"]*", "([^"]*)"',
                         place.read_text(encoding="utf-8"), re.MULTILINE)
        valid = line.group(1).split(", ")
        if not any(re.fullmatch(word.replace("<number>", "[0-9]+[KMGkmg]?"), text)
                   for word in valid):
            near = difflib.get_close_matches(text, valid, n=1)
            raise argparse.ArgumentTypeError(
                f"there is no policy {text}" + (f" (did you mean {near[0]}?)" if near else "") +
                f"; valid: {', '.join(valid)}")
    return text


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def run(options):
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        options.parser.error("a command is missing: imbrex run [options] [--] command...")
    program = shutil.which(command[0])
    if program is None:
        raise CommandError(f"{command[0]}: there is no such command")
    kind, command, variables = prepare(options, command)
    environment = dict(os.environ, **variables)
    if kind not in imbrex_deaths.DEATHS:  # srun names tasks itself
        os.execve(program, command, environment)
    imbrex_deaths.end_as(imbrex_deaths.run(kind, program, command, environment))


def prepare(options, command):
    """Whose launcher it is, if it is one; the command as it is started, and the variables that it
    is started with."""
    libraries = pathlib.Path(options.libraries) if options.libraries else find_libraries()
    preloaded = [omp_library(libraries)]
    is_launcher = LAUNCHERS.match(pathlib.Path(command[0]).name) is not None
    kind = kind_of_launcher(command[0]) if is_launcher else None
    if not options.no_mpi:
        interface = choose_interface(command, kind)
        if interface is not None:
            preloaded.append(mpi_library(libraries, interface))
    variables = chosen_variables(options, preloaded)
    if kind is None:
        return kind, command, variables
    if kind == "slurm":
        return kind, *by_slurm(command, variables)
    handed_on = {name: value for name, value in os.environ.items()
                 if name.startswith(("IMBREX_", "OMP_", "GOMP_"))}
    handed_on = {**handed_on, **variables, **imbrex_deaths.VARIABLES[kind]}
    command = handed_by(kind, command, handed_on)
    if kind == "mpich" and imbrex_deaths.lists_all(command[0]):
        command.insert(1, imbrex_deaths.LIST_ALL)
    return kind, command, {}


def chosen_variables(options, preloaded):
    before = os.environ.get("LD_PRELOAD")
    variables = {"LD_PRELOAD": ":".join([*map(str, preloaded), *([before] if before else [])])}
    if options.policy:
        variables["IMBREX_POLICY"] = options.policy
    if options.threads:
        variables["OMP_NUM_THREADS"] = str(options.threads)
    if options.trace:
        variables["IMBREX_TRACE"] = os.path.abspath(options.trace)
    if options.summary:
        variables["IMBREX_SUMMARY"] = "1"
    return variables


# ---- libraries ---------------------------------------------------------------------------------

def find_libraries():
    """The folder of libimbrex.so: of the build tree or the prefix that this command belongs to."""
    here = pathlib.Path(__file__).resolve().parent
    roots = [here.parent / "build", here.parent.parent]  # of the source tree; of share/imbrex
    command = shutil.which(sys.argv[0])
    if command:
        roots.insert(0, pathlib.Path(os.path.abspath(command)).parent.parent)
    for root in roots:
        for folder in (root / "lib", root / "lib64", *sorted(root.glob("lib/*-linux-gnu"))):
            if (folder / "libimbrex.so").exists():
                return folder
    raise CommandError("libimbrex.so is not beside this command: name its folder by --libraries")


def omp_library(libraries):
    for folder in ("omp", "imbrex"):  # built, installed
        library = libraries / folder / "libgomp.so.1"
        if library.exists():
            return library.resolve().parent / "libgomp.so.1"
    raise CommandError(f"{libraries} has no libgomp.so.1 of imbrex, in omp/ or imbrex/")


def mpi_library(libraries, interface):
    library = libraries / f"libimbrex_mpi_{interface}.so"
    if library.exists():
        return library.absolute()
    there = sorted(path.name for path in libraries.glob("libimbrex_mpi_*.so"))
    raise CommandError(f"{libraries} has no {library.name}, which {READABLE[interface]} needs "
                       f"(there is: {', '.join(there) or 'none'}): see "
                       "docs/user/choosing-an-mpi.md; --no-mpi does without")


# ---- which MPI ---------------------------------------------------------------------------------

def kind_of_launcher(launcher):
    """"openmpi", "mpich" or "slurm"."""
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    text = said.stdout + said.stderr
    for mark, kind in ((r"Open ?MPI|OpenRTE|PRRTE|prterun", "openmpi"),
                       (r"HYDRA|MPICH|Intel\(R\) MPI|MVAPICH", "mpich"), (r"slurm", "slurm")):
        if re.search(mark, text, re.IGNORECASE):
            return kind
    raise CommandError(f"{launcher} --version does not say whose launcher it is (Open MPI, MPICH "
                       "or Slurm): start the ranks yourself, each by `imbrex run`")


def interface_of(program):
    """Of the MPI that a program is linked with; None if that cannot be seen."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    for line in said.stdout.splitlines():
        for name, interface in INTERFACES:
            if re.match(rf"\s*{name}", line):
                return interface
    return None


def application(command):
    """The first word behind the launcher that names a program."""
    for word in command[1:]:
        if not word.startswith("-") and shutil.which(word) is not None:
            return shutil.which(word)
    return None


def choose_interface(command, kind):
    if kind is None:
        return interface_of(shutil.which(command[0]))
    program = application(command)
    wanted = interface_of(program) if program else None
    if wanted in ("openmpi", "mpich") and kind in ("openmpi", "mpich") and wanted != kind:
        raise CommandError(f"{program} is linked with {READABLE[wanted]}, and {command[0]} is of "
                       f"{READABLE[kind]}: use the launcher of the program's MPI")
    if wanted is None and kind == "slurm":
        raise CommandError("nothing here says which MPI the program uses: name a program that is "
                       "linked with it behind srun, or give --no-mpi")
    return wanted or kind


def handed_by(kind, command, variables):
    """The launcher's command with options that give the ranks these variables."""
    if kind == "mpich":
        given = [word for name, value in variables.items() for word in ("-genv", name, value)]
        return [command[0], *given, *command[1:]]
    given = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    handed = [command[0], *given]
    for word in command[1:]:
        handed.append(word)
        if word == ":":  # another program: Open MPI's -x is for one of them
            handed += given
    return handed


def by_slurm(command, variables):
    """srun hands on its environment; what it must not preload itself it is told."""
    others = dict(variables)
    preloaded = others.pop("LD_PRELOAD")
    if "," in preloaded:
        raise CommandError(f"srun --export cannot hand on LD_PRELOAD={preloaded}: it has a comma")
    return [command[0], f"--export=ALL,LD_PRELOAD={preloaded}", *command[1:]], others
