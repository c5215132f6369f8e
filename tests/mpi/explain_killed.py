# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program that hangs, kills all its ranks by SIGKILL, and asks imbrex-explain for the cause,
while it hangs and from the files that are left.

    explain_killed.py EXPLAIN RANKS FIRST PATTERN COMMAND...

The first line of imbrex-explain must match PATTERN both times. If FIRST is a rank, it is killed
first, behind the launcher's back, and the others live on for some seconds.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 40


def explain(program, folder):
    done = subprocess.run([program, "explain", folder], capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


def processes(folder):
    """By rank: the place of the rank in a file is that of Head in src/flight/format.hpp."""
    found = {}
    for file in folder.glob("*.flight"):
        with open(file, "rb") as head:
            rank = int.from_bytes(head.read(72)[64:], sys.byteorder)
        found[rank] = int(file.name.split(".")[-2])
    return found


def kill(numbers):
    for process in numbers:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:  # it has ended by itself
            pass


def await_ends(numbers):
    """A killed process takes a moment to end, in which it counts as running."""
    end = time.monotonic() + PATIENCE_S
    while any(os.path.exists(f"/proc/{process}") for process in numbers) and time.monotonic() < end:
        time.sleep(0.05)


def await_text(program, folder, ranks, pattern, job):
    """What is printed when the cause has been found: the facts of a rank are kept when it has stood
    still for a second."""
    end = time.monotonic() + PATIENCE_S
    text = ""
    while time.monotonic() < end:
        if len(list(folder.glob("*.flight"))) == ranks:
            text = explain(program, folder)
            if re.match(pattern, text) or job.poll() is not None:
                return text
        time.sleep(0.2)
    return text


def launchers(folder, job):
    """The launcher, and the process that it has on this node."""
    parents = {int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
               for process in processes(folder).values()}
    return [job.pid, *(parents - {1, job.pid})]


def kill_first(folder, ranks, rank, job):
    """Stops the launchers, since they would end the other ranks. Returns them."""
    while len(processes(folder)) < ranks and job.poll() is None:
        time.sleep(0.1)
    time.sleep(1)  # the ranks know their numbers by now
    stopped = launchers(folder, job)
    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    kill([processes(folder)[rank]])
    return stopped


def main(program, ranks, first, pattern, *command):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {**os.environ, "IMBREX_FLIGHT_DIR": name, "IMBREX_STALL_S": "0"}
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as job:
            stopped = []
            if first != "-":
                stopped = kill_first(folder, int(ranks), int(first), job)
            live = await_text(program, folder, int(ranks), pattern, job)
            if first != "-":
                time.sleep(2.5)  # the clocks of the others go on
            kill(processes(folder).values())
            for process in stopped:
                os.kill(process, signal.SIGCONT)
            said = job.communicate()[1]
        await_ends(processes(folder).values())
        dead = explain(program, folder)
        for when, text in (("while it hangs", live), ("from the files that are left", dead)):
            if not re.match(pattern, text):
                sys.exit(f"{when}, imbrex-explain does not begin with {pattern!r}:\n{text}\n"
                         f"The program printed:\n{said}")


main(*sys.argv[1:])
