# SPDX-License-Identifier: BSD-3-Clause
"""How `imbrex doctor` starts programs: each with a time limit, and with all that it has started.

Knows launchers by imbrex_run, and compilers by imbrex_calibrate; it judges nothing.
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys

import imbrex_calibrate
import imbrex_doctor_rank
import imbrex_run
from imbrex_doctor_machine import NOTE, Finding
from imbrex_errors import CommandError, which

HERE = os.path.dirname(os.path.realpath(__file__))
PROBE = os.path.join(HERE, "imbrex_doctor.c")
GRACE_S = 3  # for a launcher to end its ranks
Said = collections.namedtuple("Said", "code out err")
# What to do about common errors of launchers.
REMEDIES = (
    ("run as root", "start it as another user; in a container, set OMPI_ALLOW_RUN_AS_ROOT=1 and "
     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"),
    ("not enough slots", "start fewer ranks, name hosts with more slots, or allow more ranks than "
     "processors by --oversubscribe"),
    ("error while loading shared libraries", "set LD_LIBRARY_PATH, and hand it on to the ranks"),
)
# Prints the version of a library, and then the number of workers of its runtime, which reads the
# options and so names those that are wrong.
ASKS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.imbrex_version.restype = ctypes.c_char_p
print(library.imbrex_version().decode(), flush=True)
print(library.imbrex_place_count(), flush=True)
"""


class Late(Exception):
    """A program did not end in time."""


class Untried(Exception):
    """Something is not there that a check needs; `finding` says what, and what to do."""

    def __init__(self, value, remedy, state=NOTE):
        super().__init__(value)
        self.finding = Finding(state, value, remedy)


class Children:
    """Runs programs, and ends those that are late. *Thread safety:* any thread may call."""

    def __init__(self):
        self.running = set()

    def run(self, command, seconds, cwd, environment=None):
        if seconds <= 0:
            raise Late
        child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                                 env=environment, start_new_session=True)
        self.running.add(child)
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end(child)
            raise Late from None
        finally:
            self.running.discard(child)
        return Said(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def end_all(self):
        for child in list(self.running):
            end(child)


def end(child):
    """Ends a process with its group: first so that a launcher can end ranks on other nodes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.communicate(timeout=GRACE_S)
        except (ProcessLookupError, PermissionError, ValueError):
            return
        except subprocess.TimeoutExpired:
            pass


# ---- the command -------------------------------------------------------------------------------

class Command:
    """The command that the user gives, or `mpirun -n 2` if there is one. `launcher` is its first
    word, or None; `program` is the path of the program that it starts, or None, with its libraries
    in `linked`."""

    def __init__(self, words):
        self.words, self.is_given = words, bool(words)
        if not words:
            known = next(filter(which, ("mpirun", "mpiexec")), None)
            self.words = [known, "-n", "2"] if known else []
        first = self.words[0] if self.words else ""
        is_launcher = imbrex_run.LAUNCHERS.match(os.path.basename(first)) is not None
        self.launcher = first if is_launcher and which(first) else None
        self.named_launcher = first if is_launcher else None
        rest = self.words[1:] if is_launcher else self.words
        self.program, self.linked, _ = imbrex_run.application(rest)

    def starting(self, probe, kind):
        """The words that start `probe` where this command starts its programs. Commands in front of
        a program, such as numactl, stay."""
        segments = []
        for words in imbrex_run.programs_of(self.words[1:]):
            *options, program = imbrex_run.options_of(words, imbrex_run.TAKEN[kind])
            own, _, _ = imbrex_run.application(program)
            at = next((at for at, word in enumerate(program) if own and which(word) == own), 0)
            segments.append([*(word for option in options for word in option), *program[:at],
                             *map(str, probe)])
        return [self.words[0], *imbrex_run.joined(segments)]


# ---- what is started ---------------------------------------------------------------------------

def python(*words):
    return [sys.executable, "-IS", "-B", *words]


def ask_library(children, library, variables, seconds, cwd):
    """Starts the runtime of a library in a process with these IMBREX_* variables."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("IMBREX_")}
    # Those that write a file, or much text, can have no wrong name or value here.
    environment |= {name: value for name, value in variables.items()
                    if name not in ("IMBREX_TRACE", "IMBREX_SIMULATE_FILE",
                                    "IMBREX_SIMULATE_RANKS")
                    and (name, value) not in (("IMBREX_SUMMARY", "1"), ("IMBREX_SUMMARY", "on"),
                                              ("IMBREX_HELP", "1"), ("IMBREX_HELP", "on"))}
    # The rank that reports is 0, whatever job this command is a part of.
    for name in imbrex_doctor_rank.RANKS:
        environment.pop(name, None)
    return children.run(python("-c", ASKS, library), seconds, cwd, environment)


def ranks_of(text):
    """What the probes of the ranks have told, by rank."""
    told = []
    for line in re.findall(re.escape(imbrex_doctor_rank.MARK) + r"(\{.*\})", text):
        try:
            told.append(json.loads(line))
        except ValueError:
            pass  # a line that a launcher has cut
    return sorted(told, key=lambda one: one["rank"])


def compiler_for(launcher, wanted):
    """The MPI's compiler; `wanted` is what the user says."""
    try:
        found = wanted or imbrex_calibrate.compiler_of(launcher)
    except CommandError as error:
        raise Untried(f"not tried: {error}", "--mpicc names the MPI's compiler") from None
    if which(found) is None:
        raise Untried(f"not tried: there is no command {found}", "--mpicc names the MPI's compiler")
    return found


def facts_of(text):
    """What the probe has found, by name; a launcher may put a tag in front of its lines."""
    return {name: " ".join(value.split())
            for name, value in re.findall(r"imbrex-doctor (\w+) (\S.*)$", text, re.MULTILINE)}


def remedy_of(said, otherwise):
    """What to do about an error of a launcher."""
    text = said.err + said.out
    return next((remedy for mark, remedy in REMEDIES if re.search(mark, text)), otherwise)


def telling(said):
    """The first lines of an error that say something, in one line."""
    lines = [line.strip() for line in (said.err + "\n" + said.out).splitlines()]
    lines = [line for line in lines if re.search("[A-Za-z]", line)]
    text = " ".join(lines[:3])
    return text[:300] + ("..." if len(text) > 300 else "") or f"exit status {said.code}"
