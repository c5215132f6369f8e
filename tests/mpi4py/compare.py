#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs parts of mpi4py's test suite without imbrex, over the preloaded library, and with main as a
task beside others that are always busy; every test must end in all three as it does in the first.

What fails there already is no failure of imbrex's; it is named, and must not differ either.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

SKIPPED = 77  # exit status
HERE = pathlib.Path(__file__).resolve().parent


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="of the environment that has mpi4py")
    parser.add_argument("--suite", required=True, help="test/main.py of mpi4py")
    parser.add_argument("--mpi", required=True, help="the MPI library")
    parser.add_argument("--library", required=True, help="libimbrex_mpi of this MPI")
    parser.add_argument("--busy", required=True, help="the library that keeps the runtime busy")
    parser.add_argument("--reports", required=True, help="a directory for what each test did")
    parser.add_argument("--part", action="append", default=[], help="regex of test modules")
    parser.add_argument("--without", action="append", default=[], help="regex of test modules")
    parser.add_argument("--not-test", action="append", default=[], help="part of a test's name")
    parser.add_argument("--way", action="append", choices=["bare", "preloaded", "tasks"],
                        help="only these; without `bare` nothing is compared")
    parser.add_argument("--seconds", type=float, default=300, help="limit of one run")
    parser.add_argument("--suspensions", type=int, default=1, help="least of main's on each rank")
    parser.add_argument("mpirun", nargs="+", help="with the number of ranks; behind --")
    return parser.parse_args()


def end_group(process):
    """Nothing of a run is left, also when it hangs or this program is told to end."""
    for by in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, by)
            process.wait(10)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            pass


class Run:
    """One run of the suite: `outcomes` has what each rank said of each test."""

    def __init__(self, arguments, way):
        self.way = way
        self.place = pathlib.Path(arguments.reports) / way
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        self.status, self.output = self.run(arguments)
        self.outcomes = {}
        self.unfinished = {}
        for report in sorted(self.place.iterdir()):
            if report.name.isdigit():
                self.read(int(report.name), report.read_text(encoding="utf-8"))

    def command(self, arguments):
        # mpi4py takes the MPI that is there already.
        preload = {"bare": [arguments.mpi], "preloaded": [arguments.library],
                   "tasks": [arguments.busy, arguments.library]}[self.way]
        settings = ["LD_PRELOAD=" + ":".join(preload)]
        if self.way == "tasks":
            settings += ["IMBREX_MAIN_AS_TASK=1", "BUSY_REPORT=1"]
        words = [*arguments.mpirun, "env", *settings, arguments.python,
                 str(HERE / "recorded.py"), str(self.place), arguments.suite, "-q"]
        for part in arguments.part:
            words += ["-i", part]
        for part in ["spawn", "dynproc", *arguments.without]:
            words += ["-e", part]
        for name in arguments.not_test:
            words += ["-x", name]
        return words

    def run(self, arguments):
        with (self.place / "output").open("w+", encoding="utf-8", errors="replace") as output:
            # A group of its own, so that a run that hangs ends with all its ranks.
            process = subprocess.Popen(self.command(arguments), stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, start_new_session=True)
            try:
                status = process.wait(arguments.seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                end_group(process)
            output.seek(0)
            return status, output.read()

    def read(self, rank, text):
        begun = None
        for line in text.splitlines():
            word, test, *outcome = line.split("\t")
            if word == "begin":
                begun = test
            else:
                self.outcomes[rank, test] = outcome
                begun = None
        if begun is not None:
            self.unfinished[rank] = begun

    def count(self, outcome):
        return sum(1 for one in self.outcomes.values() if one[0] == outcome)

    def describe(self):
        words = ["ok", "skipped", "expected failure", "unexpected success", "failure", "error"]
        counts = ", ".join(f"{self.count(word)} {word}" for word in words if self.count(word))
        end = "did not end in time" if self.status is None else f"status {self.status}"
        return f"{self.way}: {counts or 'no test'}; {end}"


def ended(outcome):
    return "no outcome" if outcome is None else ": ".join(outcome)


def differences(bare, other):
    """Names every test that ended otherwise than without imbrex."""
    lost = [name for name in sorted(bare.outcomes) if name not in other.outcomes]
    if lost:
        yield (f"{other.way}: {len(lost)} tests did not end, such as {lost[0][1]} "
               f"on rank {lost[0][0]}")
    for rank, test in sorted(other.outcomes):
        before = bare.outcomes.get((rank, test))
        after = other.outcomes[rank, test]
        # The texts of two failures may differ by an address.
        same = before is not None and (
            before == after or (before[0] == after[0] and before[0] in ("failure", "error")))
        if not same:
            yield f"rank {rank}: {test}: bare: {ended(before)}; {other.way}: {ended(after)}"
    for rank, test in sorted(other.unfinished.items()):
        yield f"rank {rank}: {test}: {other.way}: began, and did not end"
    if other.status != bare.status:
        yield f"{other.way}: the program ended with {other.status}, bare with {bare.status}"


def suspensions(run, arguments):
    """Returns the errors in the counts that the busy library prints, one for each rank."""
    counts = [int(word) for word in
              re.findall(r"busy: main suspended at least (-?\d+) times", run.output)]
    print(f"tasks: main suspended at least {counts} times")
    if not counts or min(counts) < arguments.suspensions:
        yield f"tasks: main suspended {counts} times, at least {arguments.suspensions} expected"


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not pathlib.Path(arguments.suite).exists():
        print(f"there is no {arguments.suite}: tools/install_mpi mpi4py")
        return SKIPPED
    runs = {}
    for way in arguments.way or ["bare", "preloaded", "tasks"]:
        runs[way] = Run(arguments, way)
        print(runs[way].describe(), flush=True)
    bare = runs.pop("bare", None)
    wrong = []
    if bare is not None:
        for (rank, test), outcome in sorted(bare.outcomes.items()):
            if outcome[0] in ("failure", "error"):
                print(f"without imbrex: rank {rank}: {test}: {ended(outcome)}")
        if bare.unfinished or bare.status is None or not bare.count("ok"):
            print("\n".join(bare.output.splitlines()[-60:]))
            print(f"without imbrex the suite itself does not run: {bare.unfinished}")
            return 1
    for run in runs.values():
        found = list(differences(bare, run)) if bare is not None else []
        if run.way == "tasks":
            found += suspensions(run, arguments)
        if found or (bare is None and run.status != 0):
            print("\n".join(f"{run.way}: {line}" for line in run.output.splitlines()[-60:]))
        wrong += found
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
