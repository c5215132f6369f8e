# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex run`: starts a program that exists with our libraries preloaded.

An MPI launcher is asked to hand the variables to the ranks (-x of Open MPI, -genv of MPICH's Hydra,
--export of srun) and does not get them itself.
"""
import argparse
import os
import re
import subprocess
import sys

import imbrex_deaths
from imbrex_errors import CommandError, which

LAUNCHERS = re.compile(r"(mpirun|mpiexec|orterun|prterun|srun)([.-].*)?$")
# The name of each library of MPI, and its binary interface.
INTERFACES = ((r"libmpi_abi\.so", "abi"), (r"libmpi\.so\.40", "openmpi"),
              (r"libmpi(ch)?\.so\.(12|0)", "mpich"))
READABLE = {"openmpi": "Open MPI", "mpich": "MPICH", "abi": "MPI's standard ABI"}
# The name of a launcher, behind links, if it tells the MPI.
LAUNCHER_NAMES = {"orterun": "openmpi", "prterun": "openmpi", "mpiexec.hydra": "mpich"}

# The table of the runtime's options: installed, and in the source.
HERE = os.path.dirname(os.path.realpath(__file__))
POLICY_TABLES = (os.path.join(HERE, "policies.def"),
                 os.path.join(os.path.dirname(HERE), "src/base/tables/policies.def"))


def add_to(commands):
    parser = commands.add_parser(
        "run", help="run a program's OpenMP tasks and MPI calls on imbrex",
        usage="imbrex run [options] [--] command...",
        description="Starts a program that GCC compiled with -fopenmp on imbrex's libgomp.so.1, "
        "and under an MPI launcher (mpirun, mpiexec, srun), or if it uses MPI, with the "
        "libimbrex_mpi that fits its MPI. Variables like IMBREX_STALL_S and OMP_PLACES reach the "
        "program. If a rank dies, a message names it.")
    parser.add_argument("--policy", metavar="P", type=policy,
                        help="set IMBREX_POLICY, which selects the ready task that runs first")
    parser.add_argument("--threads", type=positive, metavar="N", help="set OMP_NUM_THREADS")
    parser.add_argument("--trace", metavar="DIR",
                        help="set IMBREX_TRACE: record a trace for `imbrex report DIR`")
    parser.add_argument("--summary", action="store_true",
                        help="set IMBREX_SUMMARY: print a table of times at the end")
    parser.add_argument("--no-mpi", action="store_true", help="do not change the MPI calls")
    parser.add_argument("--libraries", metavar="DIR",
                        help="the folder of libimbrex.so (default: beside this command)")
    parser.add_argument("command", nargs="...", metavar="command...",
                        help="the program or MPI launcher, with its arguments")
    parser.set_defaults(run=run, parser=parser)


def policies():
    """The policies as a user writes them; none where their table is not there."""
    place = next(filter(os.path.isfile, POLICY_TABLES), None)
    if place is None:
        return []
    with open(place, encoding="utf-8") as table:
        return [name + rest for name, rest in re.findall(
            r'^IMBREX_POLICY\((\w+), "([^"]*)"\)$', table.read(), re.MULTILINE)]


def policy(text):
    """A mistake is said here, once, and not by every rank when it has started."""
    valid = policies()
    if valid and not any(re.fullmatch(word.replace("<number>", "[0-9]+[KMGkmg]?"), text)
                         for word in valid):
        import difflib
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
    program = which(command[0])
    if program is None:
        raise CommandError(f"{command[0]}: there is no such command")
    kind, command, variables = prepare(options, command)
    environment = dict(os.environ, **variables)
    if kind not in imbrex_deaths.DEATHS:  # srun names tasks itself
        os.execve(program, command, environment)
    imbrex_deaths.end_as(imbrex_deaths.run(kind, program, command, environment))


def prepare(options, command):
    """Returns whose launcher the command is, if it is one; the command to start, and the variables
    of its environment."""
    libraries = options.libraries or find_libraries()
    is_launcher = LAUNCHERS.match(os.path.basename(command[0])) is not None
    kind = kind_of_launcher(command[0]) if is_launcher else None
    program, linked, before = application(command if kind is None else command[1:])
    preloaded = omp_libraries(libraries, linked)
    warn_without_openmp(options, program, linked, before)
    if not options.no_mpi:
        interface = choose_interface(command, kind, program, linked)
        if interface is not None:
            preloaded.append(mpi_library(libraries, interface))
        else:
            chooses = library_for_any_mpi(libraries)
            if kind == "slurm" and not chooses:
                raise CommandError("nothing here says which MPI the program uses: name a program "
                                   "that is linked with it behind srun, or give --no-mpi")
            preloaded += chooses
    refuse_separators(preloaded)
    variables = {"LD_PRELOAD": preload_with(preloaded, os.environ.get("LD_PRELOAD", "")),
                 **chosen_variables(options)}
    command = preloaded_by_env(command, preloaded)
    if kind is None:
        return kind, command, variables
    if kind == "slurm":
        return kind, *by_slurm(command, variables, preloaded)
    handed_on = {name: value for name, value in os.environ.items()
                 if name.startswith(("IMBREX_", "OMP_", "GOMP_", "KMP_"))}
    handed_on = {**handed_on, **variables, **imbrex_deaths.VARIABLES}
    command = HANDED_BY[kind](command, handed_on, preloaded)
    if kind == "mpich" and imbrex_deaths.lists_all(command[0]):
        command.insert(1, imbrex_deaths.LIST_ALL)
    return kind, command, {}


def chosen_variables(options):
    variables = {}
    if options.policy:
        variables["IMBREX_POLICY"] = options.policy
    if options.threads:
        variables["OMP_NUM_THREADS"] = str(options.threads)
    if options.trace:
        variables["IMBREX_TRACE"] = os.path.abspath(options.trace)
    if options.summary:
        variables["IMBREX_SUMMARY"] = "1"
    return variables


# ---- LD_PRELOAD --------------------------------------------------------------------------------

def refuse_separators(preloaded):
    apart = next((path for path in preloaded if re.search("[ :]", path)), None)
    if apart:
        raise CommandError(f"LD_PRELOAD cannot name {apart}: the dynamic linker takes a space or a "
                           "colon for the end of a path. Install imbrex in another folder")


def preload_with(preloaded, others):
    """Returns LD_PRELOAD with the libraries of imbrex in front of `others`, a value of LD_PRELOAD.
    A library of imbrex that `others` names keeps its place: so a tool comes in front of it."""
    theirs = [path for path in re.split("[ :]+", others) if path]
    named = {part_of(path) for path in theirs}
    return ":".join([*(path for path in preloaded if part_of(path) not in named), *theirs])


def part_of(path):
    """Returns one value for all libraries that intercept MPI for imbrex; else the file."""
    intercepts = re.match(r"libimbrex_(mpi|preload)[_.]", os.path.basename(path))
    return "mpi" if intercepts else os.path.realpath(path)


def preloaded_by_env(command, preloaded):
    """Returns the command with LD_PRELOAD=... behind each `env` merged."""
    merged, behind_env = [], False
    for word in command:
        if os.path.basename(word) == "env":
            behind_env = True
        elif behind_env and word.startswith("LD_PRELOAD="):
            word = f"LD_PRELOAD={preload_with(preloaded, word.partition('=')[2])}"
        elif not word.startswith("-") and "=" not in word:
            behind_env = False
        merged.append(word)
    return merged


def has_file(option):
    """Returns whether the value of an option is a file, which may be executable on some disks."""
    return re.fullmatch("--?(f|(default-)?hostfile|machinefile|rankfile|rf|tune)", option)


def options_of(words, taken):
    """Splits the words behind a launcher in front of the program. Yields each option or other word
    as a list with its values; the last list has the program and all behind it. `taken` tells how
    many values an option has that may look like a program; those of others do not."""
    at = 0
    while at < len(words) and (words[at].startswith("-") or which(words[at]) is None):
        size = 1 + taken(words, at)
        yield words[at:at + size]
        at += size
    yield words[at:]


def taken_by_open_mpi(words, at):
    return 1 if re.fullmatch("--?x", words[at]) or has_file(words[at]) else 0


def taken_by_hydra(words, at):
    if not re.fullmatch("--?g?env", words[at]):
        return 1 if has_file(words[at]) else 0
    return 1 if at + 1 < len(words) and "=" in words[at + 1] else 2


def taken_by_slurm(words, at):
    return 1 if words[at] == "--export" else 0


# How many values an option has, for options_of().
TAKEN = {"openmpi": taken_by_open_mpi, "mpich": taken_by_hydra, "slurm": taken_by_slurm}


def programs_of(words):
    """Splits the words of a launcher at each ":", which is in front of another program."""
    programs = [[]]
    for word in words:
        if word == ":":
            programs.append([])
        else:
            programs[-1].append(word)
    return programs


def joined(programs):
    words = list(programs[0])
    for program in programs[1:]:
        words += [":", *program]
    return words


# ---- libraries ---------------------------------------------------------------------------------

def find_libraries():
    """The folder of libimbrex.so: of the build tree or the prefix that this command belongs to."""
    above = os.path.dirname(HERE)
    roots = [os.path.join(above, "build"), os.path.dirname(above)]  # of the source; of share/imbrex
    command = which(sys.argv[0])
    if command:  # its prefix may hold another imbrex, if this one is installed by pip
        is_installed = os.path.isdir(os.path.join(HERE, "config"))
        roots.insert(len(roots) if is_installed else 0,
                     os.path.dirname(os.path.dirname(os.path.abspath(command))))
    for root in roots:
        lib = os.path.join(root, "lib")
        inner = sorted(os.listdir(lib)) if os.path.isdir(lib) else []
        for folder in (lib, lib + "64", *(os.path.join(lib, name) for name in inner
                                          if name.endswith("-linux-gnu"))):
            if first_of(folder, "libimbrex.so"):
                return folder
    raise CommandError("libimbrex.so is not beside this command: name its folder by --libraries")


def omp_libraries(libraries, linked):
    """Returns the faces of imbrex's OpenMP that a program with these libraries needs: that for GCC,
    and those for other compilers that it is linked with."""
    faces = ["libgomp.so.1", *faces_of_llvm(linked or ())]
    return [omp_library(libraries, name) for name in faces]


def omp_library(libraries, name):
    for folder in ("omp", "imbrex"):  # built, installed
        library = os.path.join(libraries, folder, name)
        if os.path.exists(library):
            return os.path.join(os.path.dirname(os.path.realpath(library)), name)
    raise CommandError(f"{libraries} has no {name} of imbrex, in omp/ or imbrex/")


def faces_of_llvm(linked):
    """The OpenMP library of clang, that of Intel, or both."""
    names = [os.path.basename(name) for name in linked]
    patterns = (("libomp.so.5", r"libomp\.so"), ("libiomp5.so", r"libiomp5\.so"))
    return [face for face, pattern in patterns
            if any(re.match(pattern, name) for name in names)]


def first_of(folder, name):
    """The library of this name, or with a version behind it: a Debian package for running programs
    has no other, and in a wheel the name itself is a script for the linker. None if there is
    neither."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for one in sorted(one for one in names if one == name or one.startswith(name + ".")):
        path = os.path.join(os.path.abspath(folder), one)
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                return path
    return None


def mpi_library(libraries, interface):
    library = os.path.join(libraries, f"libimbrex_mpi_{interface}.so")
    found = first_of(libraries, os.path.basename(library))
    if found:
        return found
    there = sorted(name for name in os.listdir(libraries)
                   if re.fullmatch(r"libimbrex_mpi_.*\.so", name))
    raise CommandError(f"{libraries} has no {os.path.basename(library)}, which "
                       f"{READABLE[interface]} needs (there is: {', '.join(there) or 'none'}): see "
                       f"{page('choosing-an-mpi.md')}; --no-mpi does without")


def library_for_any_mpi(libraries):
    """The library that chooses when the program calls MPI, if it is installed: nothing says before
    which MPI the program will load, if any."""
    library = os.path.join(libraries, "libimbrex_preload.so")
    return [os.path.abspath(library)] if os.path.exists(library) else []


def page(name):
    """Returns the place of a page of docs/user, of the installation or of the source."""
    above = os.path.dirname(HERE)
    folder = os.path.join(above, "doc/imbrex/docs/user")
    return os.path.join(folder if os.path.isdir(folder) else os.path.join(above, "docs/user"), name)


# ---- which MPI ---------------------------------------------------------------------------------

def kind_of_launcher(launcher):
    """"openmpi", "mpich" or "slurm"."""
    known = LAUNCHER_NAMES.get(os.path.basename(os.path.realpath(which(launcher) or launcher)))
    if known is not None:
        return known
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    return kind_by_version(launcher, said.stdout + said.stderr)


def kind_by_version(launcher, text):
    """As kind_of_launcher(), by the output of --version."""
    for mark, kind in ((r"Open ?MPI|OpenRTE|PRRTE|prterun", "openmpi"),
                       (r"HYDRA|MPICH|Intel\(R\) MPI|MVAPICH", "mpich"), (r"slurm", "slurm")):
        if re.search(mark, text, re.IGNORECASE):
            return kind
    raise CommandError(f"{launcher} --version does not say whose launcher it is (Open MPI, MPICH "
                       "or Slurm): start the ranks yourself, each by `imbrex run`")


def libraries_of(program):
    """All shared libraries that a program is linked with, as its dynamic linker lists them: their
    paths by name, None for one that is not there. None if it is no program of this machine, but for
    example a script."""
    loader = interpreter_of(program)
    if loader is None:
        return None
    said = subprocess.run([loader, "--list", program], capture_output=True, text=True, check=False)
    return {name: path for name, path in re.findall(
        r"^\s*(\S+)(?: => (/\S+))?", said.stdout, re.MULTILINE)}


def interpreter_of(program):
    """Of an ELF file of 64 bits, the dynamic linker."""
    def number(at, size):
        return int.from_bytes(head[at:at + size], "little")
    try:
        with open(program, "rb") as file:
            head = file.read(4096)
    except OSError:
        return None
    if head[:6] != b"\x7fELF\x02\x01":
        return None
    first, size, count = number(32, 8), number(54, 2), number(56, 2)
    for at in range(first, first + size * count, size):
        if number(at, 4) == 3:  # PT_INTERP
            offset, length = number(at + 8, 8), number(at + 32, 8)
            return head[offset:offset + length].rstrip(b"\0").decode() or None
    return None


def interface_of(linked):
    """Of the MPI that is among these libraries; None if that cannot be seen."""
    for library in linked or ():
        for name, interface in INTERFACES:
            if re.match(name, os.path.basename(library)):
                return interface
    return None


def has_openmp(linked):
    return bool(faces_of_llvm(linked)) or any(os.path.basename(name) == "libgomp.so.1"
                                              for name in linked)


def warn_without_openmp(options, program, linked, before):
    """Warns of a program without OpenMP where the user has asked for threads. `before`: the
    commands in front of the program, one of which may run it, or take it for an argument."""
    if linked is None or has_openmp(linked):
        return
    threads = options.threads or os.environ.get("OMP_NUM_THREADS", "1")
    if interface_of(linked) is None and any(map(may_load, [*before, program])):
        return
    contained = static_openmp(program)
    if contained is not None:
        what = (f"no OpenMP library and contains {contained}.a: its regions do not run on imbrex; "
                f"link it with {contained}.so")
    elif str(threads) != "1":
        what = (f"no OpenMP library, so {threads} threads of OpenMP are for nothing: compile and "
                "link it with -fopenmp")
    elif interface_of(linked) is None:
        what = "neither an OpenMP library (-fopenmp) nor an MPI: nothing of it runs on imbrex"
    else:
        return
    print(f"imbrex run: warning: {program} is linked with {what}", file=sys.stderr)


def static_openmp(program):
    """The OpenMP runtime that a program contains, by texts that are in no other code; or None."""
    with open(program, "rb") as file:
        code = file.read()
    texts = {"libgomp": b"GOMP_SPINCOUNT", "libomp": b"__KMP_REGISTERED_LIB_"}
    return next((name for name, text in texts.items() if text in code), None)


def may_load(program):
    """Returns whether a program may load libraries that it is not linked with, as Python and other
    scripts do, itself or by a library such as libpython."""
    linked = libraries_of(program)
    if linked is None:
        return True
    return any(calls_dlopen(path) for path in [program, *linked.values()] if path)


def calls_dlopen(path):
    if re.match(r"(lib(c|dl|m|pthread|rt)|ld-[^/]*)\.so", os.path.basename(path)):
        return False  # of the C library, which defines dlopen
    with open(path, "rb") as file:
        return b"dlopen" in file.read()


def application(words):
    """Returns the program that runs in the end, behind commands such as `env` or `taskset`, its
    libraries, and the commands before it. The program is the first word that names one, or a path
    behind it if only that path has OpenMP or MPI or is the last. (None, None, commands): there is
    no program, or only scripts."""
    found, commands = (None, None), []
    for word in words:
        if word.startswith("-") or (found[0] and "/" not in word):
            continue
        program = which(word)
        if program is None:
            continue
        commands.append(program)
        linked = libraries_of(program)
        if linked:
            found = program, linked
            if has_openmp(linked) or interface_of(linked) is not None:
                break
    before = commands[:commands.index(found[0])] if found[0] else commands
    return *found, before


def choose_interface(command, kind, program, linked):
    wanted = interface_of(linked)
    if kind is None:
        return wanted
    if wanted in ("openmpi", "mpich") and kind in ("openmpi", "mpich") and wanted != kind:
        raise CommandError(f"{program} is linked with {READABLE[wanted]}, and {command[0]} is of "
                       f"{READABLE[kind]}: use the launcher of the program's MPI")
    return wanted or (kind if kind != "slurm" else None)


def handed_by_open_mpi(command, variables, preloaded):
    """Returns the launcher's command with options that give the ranks these variables. The option
    -x is for one program, and its last value of a variable counts."""
    programs = []
    for words in programs_of(command[1:]):
        mine, kept = dict(variables), []
        *options, program = options_of(words, taken_by_open_mpi)
        for option in options:
            name, equals, value = option[-1].partition("=")
            if len(option) == 1 or name != "LD_PRELOAD":
                kept += option
            elif equals:
                mine[name] = preload_with(preloaded, value)
        given = [word for name, value in mine.items() for word in ("-x", f"{name}={value}")]
        programs.append([*given, *kept, *program])
    return [command[0], *joined(programs)]


def handed_by_hydra(command, variables, preloaded):
    """As for Open MPI: -genv is for all programs, and -env for one goes before it."""
    programs, general = [], dict(variables)
    for words in programs_of(command[1:]):
        kept = []
        *options, program = options_of(words, taken_by_hydra)
        for option in options:
            name, value = option[1:] if len(option) == 3 else option[-1].partition("=")[::2]
            if len(option) == 1 or name != "LD_PRELOAD":
                kept += option
            elif option[0].endswith("genv"):
                general[name] = preload_with(preloaded, value)
            else:
                kept += [option[0], name, preload_with(preloaded, value)]
        programs.append([*kept, *program])
    given = [word for name, value in general.items() for word in ("-genv", name, value)]
    return [command[0], *given, *joined(programs)]


HANDED_BY = {"openmpi": handed_by_open_mpi, "mpich": handed_by_hydra}


def by_slurm(command, variables, preloaded):
    """srun hands on its environment; what it must not preload itself it is told."""
    others = dict(variables)
    in_shell = others.pop("LD_PRELOAD")
    programs = []
    for number, words in enumerate(programs_of(command[1:])):
        *options, program = options_of(words, taken_by_slurm)
        exports = [option[-1].removeprefix("--export=") for option in options
                   if option[0].split("=")[0] == "--export"]
        kept = [word for option in options if option[0].split("=")[0] != "--export"
                for word in option]
        if exports or number == 0:
            export = exported(exports[-1] if exports else "ALL", in_shell, others, preloaded)
            kept.insert(0, f"--export={export}")
        programs.append([*kept, *program])
    return [command[0], *joined(programs)], others


def exported(names, in_shell, others, preloaded):
    """Returns the value of srun's --export with the variables of imbrex in it. A list without ALL
    is the whole environment of the program."""
    words = [word for word in names.split(",") if word and word not in ("NONE", "NIL")]
    named = [word.partition("=")[2] for word in words if word.startswith("LD_PRELOAD=")]
    value = preload_with(preloaded, named[-1]) if named else in_shell
    if "," in value:
        raise CommandError(f"srun --export cannot hand on LD_PRELOAD={value}: it has a comma")
    words = [word for word in words if word.partition("=")[0] != "LD_PRELOAD"]
    if "ALL" not in words:
        words += [name for name in others if name not in (word.split("=")[0] for word in words)]
    return ",".join([*words, f"LD_PRELOAD={value}"])
