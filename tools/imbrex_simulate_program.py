# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex simulate ... -- PROGRAM`: a program of the user's, on data with owners.

One process of the program inserts its tasks once for each number of ranks, and runs none of them:
src/distributed/data/recorder.hpp writes the insertions to a file, which imbrex-simulate reads.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from imbrex_errors import CommandError

OWN = "own"              # in place of the name of a program
# Measured with three accesses, on AMD EPYC: to insert a task that runs here, or on another rank.
CREATOR_US = 0.35
ELSEWHERE_US = 0.03
LINES_SHOWN = 8          # of a program that has failed


def add_options(parser, amount):
    parser.add_argument("--elsewhere-us", type=amount("elsewhere-us"), metavar="X",
                        help="YOUR_PROGRAM: time to insert a task that runs on another rank "
                        f"(default {ELSEWHERE_US})")
    parser.add_argument("--combine-us", type=amount("combine-us"), metavar="X",
                        help="YOUR_PROGRAM: time to combine two copies of a reduction (default 0)")


class Recording:
    """The insertions of the program for one number of ranks."""

    def __init__(self, path, summary):
        self.path = path
        self.names = summary["names"]  # (name, number of tasks)
        self.tasks = sum(count for _, count in self.names)
        self.accesses = summary["accesses"]
        self.data = summary["data"]


class Recorder:
    """Starts the program, once for each number of ranks."""

    def __init__(self, command):
        if shutil.which(command[0]) is None:
            raise CommandError(f"there is no program {command[0]}")
        self.command = command
        self.folder = tempfile.TemporaryDirectory(prefix="imbrex-simulate-")
        self.recordings = {}

    def recording(self, ranks):
        if ranks not in self.recordings:
            self.recordings[ranks] = self.record(ranks)
        return self.recordings[ranks]

    def record(self, ranks):
        path = pathlib.Path(self.folder.name) / f"insertions-{ranks}"
        environment = {"IMBREX_WORKERS": "1", **os.environ,
                       "IMBREX_SIMULATE_RANKS": str(ranks), "IMBREX_SIMULATE_FILE": str(path)}
        for name in ("IMBREX_TRACE", "IMBREX_SUMMARY"):
            environment.pop(name, None)
        done = subprocess.run(self.command, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        summary = pathlib.Path(f"{path}.json")
        name = self.command[0]
        if not summary.is_file():
            if done.returncode == 0 and not path.is_file():
                raise CommandError(f"{name} has ended well, and has inserted no tasks on data with "
                                   "owners: only programs that use imbrex::Space can be simulated, "
                                   "and they must be linked with this version of imbrex")
            raise CommandError(f"{name} has not inserted its tasks for {ranks} ranks: it "
                               f"{end_of(done.returncode)}. Its last lines:\n{last_lines(done)}")
        # Values do not exist here, so a program may find its result wrong, and end with a code.
        if done.returncode != 0:
            print(f"imbrex simulate: {name} {end_of(done.returncode)}, after all its insertions",
                  file=sys.stderr)
        found = json.loads(summary.read_text(encoding="utf-8"))
        if found["viewed"]:
            print(f"imbrex simulate: {name} looks at the value of {found['viewed']}, which is zero "
                  "here: a task that the program inserts because of this value is missing",
                  file=sys.stderr)
        return Recording(path, found)


def end_of(code):
    return f"died by signal {-code}" if code < 0 else f"ended with code {code}"


def last_lines(done):
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-LINES_SHOWN:]) or "  (none)"


def settings_of(recording, times, elsewhere_us, combine_us):
    """For imbrex-simulate. `times`: nanoseconds of each name."""
    settings = {"program": "owners", "file": recording.path, "kernels": len(recording.names),
                "elsewhere_ns": round(1e3 * elsewhere_us), "combine_ns": round(1e3 * combine_us)}
    for number, (name, _) in enumerate(recording.names):
        settings |= {f"name.{number}": name, f"kernel.{number}": round(times[name])}
    return settings
