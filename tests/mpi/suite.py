#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares MPICH's own test suite without imbrex, over the preloaded library, and with main as a
task.

PATH is test/mpi of an MPICH source tree, configured with the compiler of the MPI that is to be
tested, which need not be MPICH (./configure CC=mpicc --disable-fortran --disable-cxx; Debian has it
as the source package mpich). A program that is not there yet is made first. Each line of its files
`testlist` is run with the number of ranks that it names, up to --ranks. A program that passes
without imbrex and fails with it is run twice more, since some fail now and then by themselves.
The exit status is 1 if a program passes without imbrex and never with it.
"""
import argparse
import collections
import fnmatch
import os
import pathlib
import shlex
import signal
import subprocess
import sys

WAYS = {"plain": {}, "preloaded": {"IMBREX_MAIN_AS_TASK": "0"},
        "as a task": {"IMBREX_MAIN_AS_TASK": "1"}}


class Test:
    """One line of a file `testlist`: a program, its number of ranks, and what is asked for it."""

    def __init__(self, folder, words, root):
        self.folder, self.program = folder, words[0]
        numbers = [word for word in words[1:] if word.isdigit()]
        self.ranks = int(numbers[0]) if numbers else 2
        asked = collections.defaultdict(list)
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if equals:
                asked[key].append(value)
        self.arguments, self.env, self.mpirun = asked["arg"], asked["env"], asked["mpiexecarg"]
        self.seconds = int(asked["timeLimit"][0]) if asked["timeLimit"] else 0
        # Others count what mpiexec says, or expect a failure.
        self.comparable = not asked["resultTest"] and not asked["xfail"]
        self.name = " ".join([f"{folder.relative_to(root)}/{self.program}", str(self.ranks),
                              *self.arguments])


def find_tests(root, folder):
    """Returns the programs of this folder's `testlist`, and of the folders that it names."""
    listed = folder / "testlist"
    if not listed.exists():
        return []
    tests = []
    for line in listed.read_text(errors="replace").splitlines():
        words = shlex.split(line.split("#", 1)[0])
        if not words:
            continue
        if (folder / words[0]).is_dir():
            tests += find_tests(root, folder / words[0])
        elif len(words) > 1:
            tests.append(Test(folder, words, root))
    return tests


def make(test):
    program = test.folder / test.program
    if not program.exists():
        subprocess.run(["make", test.program], cwd=test.folder, capture_output=True, check=False)
    return program.exists()


def run(test, way, arguments):
    """True if the test says so itself, at its end."""
    command = [*shlex.split(arguments.mpirun), *test.mpirun, "-n", str(test.ranks), "env",
               *test.env]
    if way != "plain":
        command.append(f"LD_PRELOAD={arguments.library}")
    command += [f"./{test.program}", *test.arguments]
    # A group of its own, so that a hang leaves no rank behind.
    with subprocess.Popen(command, cwd=test.folder, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, **WAYS[way]), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=max(arguments.limit_s, test.seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # mpirun ends its ranks
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            return False
    return process.returncode == 0 and b"No Errors" in output


def passes(test, way, arguments, tries):
    return any(run(test, way, arguments) for _ in range(tries))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=pathlib.Path, metavar="PATH")
    parser.add_argument("--library", type=pathlib.Path, required=True, help="libimbrex_mpi.so")
    parser.add_argument("--mpirun", default="mpirun --oversubscribe", help="and its options")
    parser.add_argument("--ranks", type=int, default=4, help="no test with more than these")
    parser.add_argument("--only", action="append", help="shell patterns of names, as coll/*")
    parser.add_argument("--limit-s", type=int, default=30, help="seconds for one run, at least")
    arguments = parser.parse_args()
    arguments.library = arguments.library.resolve()
    root = arguments.path.resolve()
    tests = [test for test in find_tests(root, root)
             if test.comparable and test.ranks <= arguments.ranks
             and any(fnmatch.fnmatch(test.name, pattern) for pattern in arguments.only or ["*"])]
    if not tests:
        sys.exit(f"suite.py: {root} has no testlist with such tests: is it configured?")
    passed, missing, worse = collections.Counter(), 0, 0
    for test in tests:
        if not make(test):
            missing += 1
            continue
        if not passes(test, "plain", arguments, 1):
            continue
        passed["plain"] += 1
        for way in ("preloaded", "as a task"):
            if passes(test, way, arguments, 3):
                passed[way] += 1
            else:
                worse += 1
                print(f"{test.name}: passes without imbrex, and not {way}", flush=True)
    print(f"{len(tests)} tests, {missing} of them not built here; {passed['plain']} pass without "
          f"imbrex, of these {passed['preloaded']} preloaded and {passed['as a task']} with main "
          "as a task")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
