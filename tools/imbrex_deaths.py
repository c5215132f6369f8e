# SPDX-License-Identifier: BSD-3-Clause
"""Runs an MPI launcher for `imbrex run`, passes its output on, and names the rank that has died
first, by a signal or by its exit code. This rank explains the messages of all others.

A killed process cannot print a message, so the launcher's output is read. Open MPI's launcher names
the rank in its own words. MPICH's Hydra lists how all processes have ended, also those that it has
killed itself, and names one, which may be one of these. Therefore ranks report their process ids,
and the processes of this node are watched. If the dead ranks were not watched, the first is not
known, and all are named. Open MPI 4.1 sometimes loses the text of MPI_Abort, and Open MPI 5 that of
a rank that returns a code other than 0 after MPI_Finalize, so ranks report these too. Output that
only this file has requested is not passed on. src/mpi/engine/deaths.cpp writes the reports.
"""
import os
import re
import select
import signal
import subprocess
import sys
import threading

# The lines by which each launcher names the first process that it has seen die.
DEATHS = {
    "openmpi": (
        r"MPI_ABORT was invoked on rank (?P<rank>\d+) in communicator MPI_COMM_WORLD\s+"
        r"(?:Proc: \S+\s+)?(?:with errorcode|Errorcode:) (?P<abort>-?\d+)",
        r"process rank (?P<rank>\d+) with PID \d+ on node \S+\s+exited on\s+signal (?P<signal>\d+)",
        r"Process name:\s+\[.*[,@](?P<rank>\d+)\]\s+Exit code:\s+(?P<code>\d+)",
        r"has exited due to process rank (?P<rank>\d+) with PID \d+ on\s+node \S+\s+"
        r"(?P<improperly>exiting\s+improperly|calling\s+\"abort\")"),
    "mpich": (r"^Abort\((?P<abort>-?\d+)\) on node (?P<rank>\d+) ",
              r"=\s+PID (?P<pid>\d+) RUNNING AT \S+\s+=\s+EXIT CODE: (?P<signal>9)\s",),
}
# Ranks that are asked to by this variable say so (src/mpi/engine/deaths.cpp).
VARIABLES = {"IMBREX_TELL_PROCESS": "1"}
LIST_ALL = "-print-all-exitcodes"  # an option of Hydra
MARKS = (b"imbrex: rank ", b"[mpiexec@")
TAG = rb"^(?:\[[^\]\n]*\](?:<\w+>)?:? ?)?"  # of mpirun --tag-output, and MPICH's -prepend-rank
TOLD = re.compile(TAG + rb"imbrex: rank (\d+) is process (\d+) on (\S+)\n", re.MULTILINE)
ENDED = re.compile(TAG + rb"imbrex: rank (\d+) (?:ends with exit (code)|calls MPI_(Abort) with "
                   rb"code) (-?\d+)\n", re.MULTILINE)
LISTED = re.compile(rb"^\[mpiexec@\S+\] Exit codes: (\[.*\d)\n", re.MULTILINE)
KEPT = 1 << 16  # bytes: its message is the last that a launcher prints
NAMED_MAX = 8   # ranks
HANDED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Stream(threading.Thread):
    """Hands on what comes from a pipe as it comes, and keeps its end."""

    def __init__(self, pipe, target, asked):
        super().__init__(daemon=True)
        self.pipe, self.target, self.asked = pipe, target, asked
        self.end = b""
        self.start()

    def run(self):
        held = b""
        while piece := os.read(self.pipe.fileno(), 1 << 16):
            *lines, rest = (held + piece).splitlines(keepends=True)
            if rest.endswith(b"\n"):
                lines, rest = [*lines, rest], b""
            # The beginning of a line that may be one of these waits for what follows.
            held = rest if any(rest[:len(mark)] == mark[:len(rest)] for mark in MARKS) else b""
            text = self.asked.take_out(b"".join(lines)) + (b"" if held else rest)
            self.hand_on(text)
        self.hand_on(held)

    def hand_on(self, text):
        self.end = (self.end + text)[-KEPT:]
        try:
            while text:
                text = text[os.write(self.target, text):]
        except OSError:
            pass  # the reader has left; the launcher goes on


class Asked:
    """The output that Hydra and the ranks were asked for."""

    def __init__(self):
        self.ranks = {}     # by process
        self.hosts = {}     # lists of ranks
        self.told = []      # what ranks have told of their ends: parts as those of DEATHS
        self.statuses = []  # of ranks, as waitpid() gives them: (rank, status)
        self.ended = []     # ranks of this node that were watched when they ended, in that order
        self.watched = select.epoll()  # hands out what ends in the order in which it ends
        self.descriptors = {}
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            for descriptor, _ in self.watched.poll():
                self.watched.unregister(descriptor)
                self.ended.append(self.descriptors[descriptor])

    def take_out(self, text):
        text = ENDED.sub(self.take_end, TOLD.sub(self.take_rank, text))
        return LISTED.sub(self.take_statuses, text)

    def take_end(self, match):
        self.told.append({"rank": match[1].decode(),
                          "abort" if match[3] else "code": match[4].decode()})
        return b""

    def take_rank(self, match):
        self.ranks[int(match[2])] = int(match[1])
        self.hosts.setdefault(match[3], []).append(int(match[1]))
        if match[3].decode() == os.uname().nodename:
            try:
                descriptor = os.pidfd_open(int(match[2]))
                now = select.poll()
                now.register(descriptor, select.POLLIN)
                if not now.poll(0):
                    self.descriptors[descriptor] = int(match[1])
                    self.watched.register(descriptor, select.EPOLLIN)
            except OSError:
                pass  # it has ended, or an old kernel
        return b""

    def take_statuses(self, match):
        """Takes the exit statuses, in the order of ranks on each host."""
        first = 0
        for host, statuses in re.findall(rb"\[([^\]]+)\] ([\d,]+)", match[1]):
            statuses = [int(status) for status in statuses.split(b",")]
            ranks = sorted(self.hosts.get(host, []))
            if len(ranks) != len(statuses):
                ranks = range(first, first + len(statuses))
            self.statuses += zip(ranks, statuses)
            first += len(statuses)
        return b""

    def end(self):
        """Of a rank that has ended badly and was not killed, which Hydra does to others."""
        for rank, status in self.statuses:
            if status not in (0, signal.SIGKILL, signal.SIGTERM):
                return {"rank": rank, "signal": status % 128, "code": status >> 8}
        killed = [rank for rank, status in self.statuses if status != 0]
        if not killed:
            return None
        seen = [rank for rank in self.ended if rank in killed]
        if len(killed) == 1 or len(seen) == len(killed):
            return {"rank": (seen or killed)[0], "signal": signal.SIGKILL}
        return {"ranks": killed, "signal": signal.SIGKILL}


def lists_all(launcher):
    said = subprocess.run([launcher, "-help"], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    return LIST_ALL in said.stdout + said.stderr


def run(kind, program, command, environment):
    """Runs the launcher. Its exit code, negative for a signal."""
    child = subprocess.Popen(command, executable=program, env=environment,
                             stdout=subprocess.PIPE if kind == "mpich" else None,
                             stderr=subprocess.PIPE)
    for number in HANDED_ON:
        signal.signal(number, lambda got, frame: child.send_signal(got))
    signal.signal(signal.SIGINT, lambda got, frame: None)  # the terminal gives it to both
    asked = Asked()
    streams = [Stream(pipe, target, asked)
               for pipe, target in ((child.stdout, 1), (child.stderr, 2)) if pipe is not None]
    code = child.wait()
    for stream in streams:
        stream.join(timeout=2)  # what the launcher has left behind may hold the pipe
    said = b"".join(stream.end for stream in streams).decode(errors="replace")
    if code != 0 and (text := describe(kind, said, asked)):
        print(f"imbrex run: {text}", file=sys.stderr)
    return code


def describe(kind, said, asked):
    """Returns the rank that has died first, by the launcher's output; None if it names none."""
    found = [match for pattern in DEATHS[kind]
             if (match := re.search(pattern, said, re.MULTILINE))]
    parts = min(found, key=re.Match.start).groupdict() if found else {}
    if not parts.get("abort"):
        parts = asked.end() or parts
    if not parts and asked.told:
        parts = asked.told[0]
    if not parts:
        return None
    rank = parts.get("rank")
    if rank is None and "pid" in parts:
        rank = asked.ranks.get(int(parts["pid"]))
    if "ranks" in parts:
        named = ", ".join(map(str, sorted(parts["ranks"])[:NAMED_MAX]))
        more = ", ..." if len(parts["ranks"]) > NAMED_MAX else ""
        who = f"one of {len(parts['ranks'])} ranks ({named}{more})"
    elif rank is not None:
        who = f"rank {rank}"
    else:
        who = f"process {parts['pid']}, which is no rank yet,"
    if parts.get("abort"):
        return f"{who} was the first to end: by MPI_Abort with code {parts['abort']}"
    if parts.get("signal"):
        return f"{who} was the first to end: by signal {name_of(int(parts['signal']))}"
    if parts.get("code"):
        return f"{who} was the first to end: with exit code {parts['code']}"
    return f"{who} was the first to end: without MPI_Finalize"


def name_of(number):
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


def end_as(code):
    """Ends this process as the launcher has ended."""
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
