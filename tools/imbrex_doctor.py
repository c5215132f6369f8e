# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex doctor`: examines the machine, the MPI and the installation, and says what to do.

Each check is a function of the facts, and returns findings. imbrex_doctor_machine reads the node,
imbrex_doctor_launch starts programs, and what is expensive is found once.
"""
import argparse
import json
import math
import os
import pathlib
import re
import resource
import signal
import sys
import tempfile
import threading
import time

import imbrex_config
import imbrex_doctor_launch as launch
import imbrex_doctor_rank
import imbrex_run
from imbrex_doctor_launch import Late, Untried
from imbrex_doctor_machine import FAIL, NOTE, OK, WARN, Finding, Machine, found_ok, plural
from imbrex_errors import CommandError, brief, which

SEVERITIES = (OK, NOTE, WARN, FAIL)
BINDING_HELP = ("Open MPI: --bind-to none, or --map-by slot:PE=N --bind-to core; MPICH: -bind-to "
                "none; srun: --cpus-per-task=N")
LEVEL_HELP = "use an MPI that is built with thread support, and do not restrict it"


def add_to(commands):
    parser = commands.add_parser(
        "doctor", help="examine the machine, the MPI and the installation, and say what to do",
        usage="imbrex doctor [options] [-- COMMAND...]",
        description="Prints one line for each check: ok, note, warn or FAIL, what was found, and "
        "what to do. COMMAND is the launcher and the program as you start them, as mpirun -n 4 "
        "./program; instead of the program, two small ones are started. Without COMMAND it is "
        "mpirun -n 2. Nothing is changed; only a temporary folder is written. The exit status is "
        "1 if a check says FAIL.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seconds", metavar="N", type=seconds, default=20,
                        help="give each check N seconds (default 20)")
    parser.add_argument("--mpicc", metavar="COMMAND", help="the MPI's C compiler (default: mpicc "
                        "beside the launcher, else of the PATH)")
    parser.add_argument("--libraries", metavar="DIR",
                        help="the folder of libimbrex.so (default: beside this command)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND...",
                        help="the launcher and the program, with their arguments")
    parser.set_defaults(run=run, parser=parser)


def seconds(text):
    number = float(text)
    if not 0 < number <= 1e6:
        raise ValueError(text)
    return number


def run(options):
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    children, found = launch.Children(), []
    # What has been started ends, and the folder goes, also if the reader of the output leaves.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    signal.signal(signal.SIGINT, lambda number, frame: sys.exit(128 + number))
    try:
        with tempfile.TemporaryDirectory(prefix="imbrex-doctor-") as folder:
            facts = Facts(options, words, children, folder)
            for name, check in CHECKS:
                for finding in ended(check, facts):
                    found.append((name, finding))
                    if not options.json:
                        print(line_of(name, finding), flush=True)
    except BrokenPipeError:  # Python would write what is left when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    finally:
        children.end_all()
    worst = max((SEVERITIES.index(one.state) for _, one in found), default=0)
    if options.json:
        print(json.dumps({"version": imbrex_config.version(), "status": SEVERITIES[worst],
                          "checks": [{"check": name, **one._asdict()} for name, one in found]},
                         indent=1))
    else:
        print(count_of(found))
    if SEVERITIES[worst] == FAIL:
        sys.exit(1)


def line_of(name, finding):
    text = f"{finding.state:<5} {name + ':':<{WIDEST + 1}} {finding.value}"
    return brief(text + (f" -> {finding.remedy}" if finding.remedy else ""))


def count_of(found):
    counts = [sum(one.state == state for _, one in found) for state in SEVERITIES]
    return (f"imbrex doctor: {counts[0]} ok, {plural(counts[1], 'note')}, "
            f"{plural(counts[2], 'warning')}, {plural(counts[3], 'failure')}")


# ---- facts -------------------------------------------------------------------------------------

def ended(check, facts):
    """The findings of a check. A file system may block it for longer than its time."""
    found = []
    facts.deadline = time.monotonic() + facts.options.seconds
    thread = threading.Thread(target=lambda: found.extend(outcome(check, facts)), daemon=True)
    thread.start()
    thread.join(facts.options.seconds + 3 * launch.GRACE_S)
    return [late(facts)] if thread.is_alive() else found


def outcome(check, facts):
    try:
        return check(facts)
    except Late:
        return [late(facts)]
    except Untried as untried:
        return [untried.finding]
    except CommandError as error:
        value, _, remedy = " ".join(str(error).split()).rpartition(": ")
        return [Finding(WARN, value or remedy, remedy)]
    except Exception as error:  # an odd machine is described, whatever it lacks
        return [Finding(NOTE, f"not examined: {type(error).__name__}: {error}", "see whether the "
                        "files and commands of this check are there, and may be used")]


def late(facts):
    return Finding(WARN, f"did not end in {facts.options.seconds:g} s", "a slow or busy machine "
                   "needs more time: --seconds")


def once(find):
    """A fact that is found when it is first asked for, or the reason why it cannot be."""
    def value(self):
        if find.__name__ not in self.known:
            try:
                self.known[find.__name__] = find(self), None
            except (Late, Untried, CommandError) as error:
                self.known[find.__name__] = None, error
        found, error = self.known[find.__name__]
        if error is not None:
            raise error
        return found
    return property(value)


class Facts:
    """What several checks need."""

    def __init__(self, options, words, children, folder, machine=None):
        self.options, self.children, self.folder = options, children, folder
        self.machine = machine or Machine()
        self.command = launch.Command(words)
        self.known = {}
        self.deadline = time.monotonic() + options.seconds

    def start(self, command, environment=None):
        return self.children.run(command, self.deadline - time.monotonic(), None, environment)

    @property
    def variables(self):
        return {name: value for name, value in os.environ.items() if name.startswith("IMBREX_")}

    @property
    def ranks_here(self):
        """How many ranks of the command are on this node; 1 if that is not known."""
        try:
            return max(1, sum(one["host"] == os.uname().nodename for one in self.ranks))
        except (Late, Untried, CommandError):
            return 1

    @once
    def libraries(self):
        try:
            return self.options.libraries or imbrex_run.find_libraries()
        except CommandError as error:
            raise Untried(*str(error).split(": ", 1), FAIL) from None

    @once
    def library(self):
        found = imbrex_run.first_of(self.libraries, "libimbrex.so")
        if found is None:
            raise Untried(f"{self.libraries} has no libimbrex.so", "name its folder by --libraries",
                          FAIL)
        return found

    def ask(self, library, variables):
        said = launch.ask_library(self.children, library, variables,
                                  self.deadline - time.monotonic(), None)
        if "No module named" in said.err:
            raise Untried("not tried: this Python has no ctypes", "call imbrex with another "
                          "python3 first in PATH")
        if not said.out:
            raise Untried(f"{library} cannot be loaded: {said.err.strip().splitlines()[-1:]}",
                          "install what it names, or imbrex for this machine", FAIL)
        return said

    @once
    def asked(self):
        return self.ask(self.library, {"IMBREX_PLACES": "worker", **self.variables})

    @once
    def workers(self):
        """Of a process that is started here; None if the runtime does not start."""
        said = self.asked
        if self.variables.get("IMBREX_PLACES", "worker") != "worker":
            said = self.ask(self.library, {**self.variables, "IMBREX_PLACES": "worker"})
        lines = said.out.split()
        return int(lines[1]) if len(lines) == 2 and said.code == 0 else None

    @once
    def kind(self):
        """Whose launcher the command has, and the first line of what it says of itself."""
        command = self.command
        if command.launcher is None:
            raise Untried("not tried: there is no launcher", "name one: imbrex doctor -- mpirun -n "
                          "2 ./program")
        said = self.start([command.launcher, "--version"])
        name = os.path.basename(os.path.realpath(which(command.launcher)))
        text = said.out + said.err
        kind = imbrex_run.LAUNCHER_NAMES.get(name) or imbrex_run.kind_by_version(command.launcher,
                                                                                 text)
        version = re.search(r"^\s*(Version:.*|.*\d\.\d.*)$", text, re.MULTILINE)
        return kind, " ".join(version[1].split()) if version else "no version"

    @once
    def ranks(self):
        """What the probes of all ranks have told; never empty."""
        probe = launch.python(imbrex_doctor_rank.__file__)
        said = self.start(self.command.starting(probe, self.kind[0]))
        told = launch.ranks_of(said.out)
        if said.code != 0 or not told:
            raise Untried(f"the launcher has not started the ranks: {launch.telling(said)}",
                          launch.remedy_of(said, "try the launcher with hostname in place of the "
                                           "program"), FAIL)
        return told

    @once
    def probe(self):
        """The program that tries the MPI, compiled."""
        mpicc = launch.compiler_for(self.command.launcher, self.options.mpicc)
        folder = self.folder
        if any(one["host"] != os.uname().nodename for one in self.ranks):
            # Other nodes may see the present folder, and not a temporary one.
            self.shared = tempfile.TemporaryDirectory(prefix=".imbrex-doctor-", dir=".")
            folder = self.shared.name
        program = os.path.join(os.path.abspath(folder), "probe")
        said = self.start([mpicc, "-o", program, launch.PROBE, "-ldl"])
        if said.code != 0:
            raise Untried(f"not tried: {mpicc} failed: {launch.telling(said)}", "mend the compiler "
                          "or name another one by --mpicc")
        compiled, kind = imbrex_run.interface_of(imbrex_run.libraries_of(program)), self.kind[0]
        if {compiled, kind} == {"openmpi", "mpich"}:
            raise Untried(f"not tried: {mpicc} compiles for {imbrex_run.READABLE[compiled]}, and "
                          f"{self.command.launcher} is of {imbrex_run.READABLE[kind]}",
                          "--mpicc names the compiler of the launcher's MPI")
        return program

    def try_probe(self, *before, environment=None):
        """What the probe has found, started by the command behind the words `before`."""
        said = self.start([*before, *self.command.starting([self.probe], self.kind[0])],
                          environment)
        facts = launch.facts_of(said.out)
        if said.code != 0 or "level" not in facts:
            raise Untried(f"the probe has ended with status {said.code}: {launch.telling(said)}",
                          launch.remedy_of(said, "the message says what is wrong"), FAIL)
        return facts


# ---- checks: the node, and imbrex --------------------------------------------------------------

def processors(facts):
    allowed = os.sched_getaffinity(0)
    try:
        workers = facts.workers
    except (Late, Untried, CommandError):
        workers = None
    return facts.machine.processors(allowed, workers)


def load(facts):
    return facts.machine.load(os.sched_getaffinity(0))


def versions(facts):
    library = facts.asked.out.split()[0]
    value = f"{facts.library} is {library}"
    folder = headers_for(facts.library)
    if folder is None:
        return [found_ok(f"{value}; there are no headers beside it")]
    text = (folder / "imbrex/version.h").read_text(encoding="utf-8")
    headers = ".".join(re.findall(r"^#define IMBREX_VERSION_[A-Z]+ ([0-9]+)", text, re.MULTILINE))
    value += f"; the headers in {folder} are {headers}"
    if not fits(headers, library):
        return [Finding(FAIL, value, "programs end at their start: install headers and library of "
                        "one version, or name another folder by --libraries")]
    return [found_ok(value)]


def headers_for(library):
    """The folder of the headers that a program would be compiled with; None if there is none."""
    folders = [pathlib.Path(library).parent.parent / "include"]
    try:
        folders.append(pathlib.Path(imbrex_config.Build(None, False).includedir()[0]))
    except CommandError:
        pass  # nothing was built or installed for compiling programs
    return next((one for one in folders if (one / "imbrex/version.h").is_file()), None)


def fits(headers, library):
    """As include/imbrex/version.h says."""
    headers, library = ([int(number) for number in text.split(".")] for text in (headers, library))
    return headers[:2] == library[:2] and headers[2:] <= library[2:]


def options_of_runtime(facts):
    sets = [("", facts.variables)]
    try:
        for one in facts.ranks:
            if one["variables"] not in [variables for _, variables in sets]:
                sets.append((f"in rank {one['rank']}: ", one["variables"]))
    except (Late, Untried, CommandError):
        pass  # the check of the ranks says so
    found = []
    for where, variables in sets[:4]:
        said = facts.asked if not where else facts.ask(facts.library, variables)
        for text in re.findall(r"^imbrex: (.*\bIMBREX_.*)$", said.err, re.MULTILINE):
            if "there is no option" in text or "there are no options" in text:
                found.append(Finding(WARN, where + re.split(r": (it is|they are) ignored", text)[0],
                                     "it has no effect: correct it; IMBREX_HELP=1 prints all "
                                     "options"))
            elif said.code != 0:
                value, _, valid = text.partition(": ")
                found.append(Finding(FAIL, where + value, f"a program would end at its start; "
                                     f"{valid or 'correct the value'}"))
        if said.code != 0 and not found:
            found.append(Finding(FAIL, f"{where}the runtime does not start: "
                                 f"{launch.telling(said)}", "the message says what to change"))
    names = ", ".join(sorted({name for _, variables in sets for name in variables}))
    return found or [found_ok(f"the runtime takes {names}" if names else
                              "no IMBREX_* variable is set")]


# ---- checks: the launcher and the program ------------------------------------------------------

def launcher(facts):
    command = facts.command
    if command.named_launcher and command.launcher is None:
        return [Finding(FAIL, f"there is no command {command.named_launcher}", "load the module of "
                        "the MPI, or name the launcher by its path")]
    if not command.words:
        return [Finding(NOTE, "there is no mpirun and no mpiexec in PATH", "load the module of the "
                        "MPI, or name a launcher: imbrex doctor -- /path/to/mpirun -n 2")]
    if command.launcher is None:
        return [Finding(NOTE, f"{command.words[0]} is no launcher of an MPI", "name it as you "
                        "start it: imbrex doctor -- mpirun -n 2 ./program")]
    kind, version = facts.kind
    name = imbrex_run.READABLE.get(kind, "Slurm")
    return [found_ok(f"{which(command.launcher)} is of {name}: {version}")]


def program(facts):
    command = facts.command
    if command.program is None:
        if command.is_given and command.launcher is None and which(command.words[0]) is None:
            return [Finding(FAIL, f"there is no command {command.words[0]}", "name the program by "
                            "its path")]
        return lacking(facts) or [Finding(
            NOTE, "no program is named that is linked with libraries", "imbrex doctor -- mpirun -n "
            "2 ./program examines one")]
    linked = command.linked
    interfaces = {imbrex_run.interface_of([name]) for name in linked} - {None}
    names = " and ".join(sorted(imbrex_run.READABLE[one] for one in interfaces)) or "no MPI"
    own = next((path for name, path in linked.items() if name.startswith("libimbrex.so")), None)
    value = (f"{command.program} is linked with {names}, " +
             (f"and with imbrex ({own})" if own else "and not with imbrex"))
    if len(interfaces) > 1:
        return [Finding(FAIL, value, "link it with one MPI")]
    try:
        kind = facts.kind[0]
    except (Late, Untried, CommandError):
        kind = None  # the check of the launcher says why
    if interfaces and {kind, *interfaces} == {"openmpi", "mpich"}:
        return [Finding(FAIL, f"{value}; {command.launcher} is of {imbrex_run.READABLE[kind]}",
                        "use the launcher of the program's MPI: each process would be rank 0 of "
                        "1")]
    if own and os.path.realpath(own) != os.path.realpath(facts.library):
        return [Finding(NOTE, f"{value}, while this command belongs to {facts.library}", "call the "
                        "imbrex command of the installation that the program uses")]
    return [found_ok(value)]


def lacking(facts):
    """The finding on a program that lacks a library, of which no library is known therefore."""
    for path in filter(None, map(which, facts.command.words[1 if facts.command.launcher else 0:])):
        loader = imbrex_run.interpreter_of(path)
        said = facts.start([loader, "--list", path]) if loader else None
        missing = re.search(r"loading shared libraries: (\S+):", said.err) if said else None
        if missing:
            return [Finding(FAIL, f"{path} does not find {missing[1]}", "set LD_LIBRARY_PATH, or "
                            "load the modules with which it was linked")]
    return []


def openmp(facts):
    linked = facts.command.linked
    if linked is None:
        return [Finding(NOTE, "no program is named", "imbrex doctor -- mpirun -n 2 ./program")]
    found = {name: path for name, path in linked.items()
             if re.match(r"lib(gomp\.so\.1$|omp\.so|iomp5\.so)", os.path.basename(name))}
    value = ", ".join(path or name for name, path in found.items()) or "not used by the program"
    if len(found) > 1:
        return [Finding(NOTE, value, "two OpenMP libraries start twice as many threads; by `imbrex "
                        "run` both are one runtime")]
    return [found_ok(value)]


# ---- checks: the ranks -------------------------------------------------------------------------

def by_host(ranks):
    hosts = {}
    for one in ranks:
        hosts.setdefault(one["host"], []).append(one)
    return hosts


def ranks(facts):
    told = facts.ranks
    hosts = by_host(told)
    value = (f"{plural(len(told), 'rank')} on {plural(len(hosts), 'node')} "
             f"({', '.join(sorted(hosts)[:4])}{', ...' if len(hosts) > 4 else ''})")
    own = {name: resource.getrlimit(limit)[0] for name, limit in imbrex_doctor_rank.LIMITS.items()}
    other = next((f"{name} is {one['limits'][name]} in rank {one['rank']} and {limit} here (-1: "
                  "no limit)" for one in told for name, limit in own.items()
                  if one["limits"].get(name) != limit), None)
    if other:
        return [Finding(WARN, f"{value}; {other}", "the launcher's daemon sets the limits of the "
                        "ranks: set them in the job script, or in limits.conf of the nodes")]
    return [found_ok(value)]


def told_ranks(facts):
    """As facts.ranks, for checks that come after the check of the ranks, which has said why."""
    try:
        return facts.ranks
    except Late:
        value = "not tried: the start of the ranks did not end in time"
    except (Untried, CommandError):
        value = "not tried: no rank was started"
    raise Untried(value, "see the lines on launcher and ranks")


def binding(facts):
    return [binding_of(host, there) for host, there in by_host(told_ranks(facts)).items()]


def binding_of(host, there):
    masks = [set(one["allowed"]) for one in there]
    union, present = set().union(*masks), there[0]["present"]
    sizes = sorted({len(mask) for mask in masks})
    value = (f"{plural(len(there), 'rank')} on {host}: "
             f"{'-'.join(str(size) for size in sorted({sizes[0], sizes[-1]}))} of "
             f"{plural(present, 'processor')} each")
    if len(there) > 1 and len(union) < min(len(there), present):
        return Finding(WARN, f"{value}, {len(union)} together", "ranks are bound to the same "
                       f"processors: {BINDING_HELP}")
    if sizes[-1] < present and len(union) < present:
        return Finding(WARN, f"{value}, {len(union)} together", "a rank has a worker for each of "
                       f"its processors, and the others stay idle: {BINDING_HELP}")
    return found_ok(value)


def oversubscription(facts):
    quota = facts.machine.quota()
    found = []
    for host, there in by_host(told_ranks(facts)).items():
        together = len(set().union(*(set(one["allowed"]) for one in there)))
        usable = together if quota is None or host != os.uname().nodename else min(together, quota)
        asked = [one["variables"].get("IMBREX_WORKERS", "0") for one in there]
        wanted = sum(max(1, int(text) if text.isdigit() else 1) for text in asked)
        value = (f"{plural(len(there), 'rank')} on {host} with {plural(wanted, 'worker')} at least "
                 f"on {plural(math.ceil(usable), 'processor')}")
        if len(there) > usable:
            found.append(Finding(WARN, value, "start fewer ranks on a node: ranks that wait in MPI "
                                 "take the processor from others"))
        elif wanted > usable:
            found.append(Finding(WARN, value, "set IMBREX_WORKERS lower, or leave it out"))
        else:
            found.append(found_ok(value))
    return found


def lending(facts):
    return [lending_of(host, there) for host, there in by_host(told_ranks(facts)).items()]


def lending_of(host, there):
    """Whether ranks of a node can lend processors to each other, as the runtime decides it."""
    value = f"{plural(len(there), 'rank')} on {host}"
    if len(there) == 1:
        return found_ok(f"{value}: there is no other rank to lend to")
    processors = len(set().union(*(set(one["allowed"]) for one in there)))
    if any(not one["shared_memory"] for one in there):
        return Finding(NOTE, f"{value}: not possible, there is no writable /dev/shm", "mount a "
                       "tmpfs there if you want IMBREX_LEND=1")
    if len({(one["shared_memory"], one["process_space"]) for one in there}) > 1:
        return Finding(NOTE, f"{value}: not possible, they run in different containers", "start "
                       "the ranks of a node in one container, or with one /dev/shm and one PID "
                       "namespace, if you want IMBREX_LEND=1")
    if processors < len(there):
        return Finding(NOTE, f"{value}: not possible, they share {plural(processors, 'processor')}",
                       "see the line on binding if you want IMBREX_LEND=1")
    return found_ok(f"{value}: possible by IMBREX_LEND=1")


# ---- checks: the MPI ---------------------------------------------------------------------------

def thread_level(facts):
    told_ranks(facts)
    found = facts.try_probe()
    value = f"{found['library']} gives {found['level']} to {plural(int(found['ranks']), 'rank')}"
    if found["ranks"] == "1" and len(facts.ranks) > 1:
        return [Finding(FAIL, f"{value} of {len(facts.ranks)}: each process is rank 0 of 1",
                        "use the launcher of the program's MPI; srun: --mpi=pmix or --mpi=pmi2")]
    if found["arrived"] != "1":
        return [Finding(FAIL, f"{value}, and a message has not arrived as it was sent", "see "
                        "whether other MPI programs work here")]
    if found["level"] in ("MPI_THREAD_SERIALIZED", "MPI_THREAD_FUNNELED"):
        if facts.variables.get("IMBREX_PROGRESS") in ("dedicated-thread", "CT-DE"):
            return [Finding(NOTE, value, "IMBREX_PROGRESS=dedicated-thread is set: one thread "
                            "makes all calls")]
        return [Finding(FAIL, value, f"{LEVEL_HELP}, or set IMBREX_PROGRESS=dedicated-thread")]
    if found["level"] == "MPI_THREAD_SINGLE":
        return [Finding(FAIL, value, LEVEL_HELP)]
    if found["ranks"] == "1":
        return [Finding(NOTE, value, "give the launcher two ranks, so that messages are tried")]
    return [found_ok(f"{value}, and messages arrive")]


def with_imbrex(facts):
    told_ranks(facts)
    run_it = launch.python(os.path.join(launch.HERE, "imbrex"), "run", "--libraries",
                           facts.libraries, "--")
    # main is a task, so that imbrex has the calls of a program that does not know it.
    found = facts.try_probe(*run_it, environment={**os.environ, "IMBREX_MAIN_AS_TASK": "1"})
    workers = "-".join(dict.fromkeys((found["workers_least"], found["workers_most"])))
    value = (f"imbrex {found['imbrex']} runs in {plural(int(found['ranks']), 'rank')}, with "
             f"{workers} {'worker' if workers == '1' else 'workers'} each")
    if found["imbrex"] == "none":
        return [Finding(FAIL, "imbrex run has not brought its libraries into the ranks", "see "
                        "whether the launcher hands LD_PRELOAD on")]
    if found["arrived"] != "1":
        return [Finding(FAIL, f"{value}, and a message has not arrived as it was sent", "try "
                        "imbrex run with another MPI, and report this")]
    return [found_ok(value)]


CHECKS = (
    ("processors", processors),
    ("load", load),
    ("shared memory", lambda facts: facts.machine.shared_memory(facts.ranks_here)),
    ("stacks", lambda facts: facts.machine.stacks()),
    ("address space", lambda facts: facts.machine.address_space()),
    ("mappings", lambda facts: facts.machine.mappings()),
    ("threads", lambda facts: facts.machine.threads(facts.ranks_here)),
    ("ptrace", lambda facts: facts.machine.ptrace()),
    ("core files", lambda facts: facts.machine.core_files()),
    ("network", lambda facts: facts.machine.network()),
    ("versions", versions),
    ("options", options_of_runtime),
    ("launcher", launcher),
    ("program", program),
    ("OpenMP", openmp),
    ("ranks", ranks),
    ("binding", binding),
    ("oversubscription", oversubscription),
    ("lending", lending),
    ("thread level", thread_level),
    ("with imbrex", with_imbrex),
)
WIDEST = max(len(name) for name, _ in CHECKS)
