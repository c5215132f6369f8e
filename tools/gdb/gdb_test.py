#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gdb_test.py PROGRAM OPENMP FOLDER: the commands of imbrex-gdb.py on a live process and on a core
file of it.

Methodology: PROGRAM (suspended_case.cpp) and OPENMP (omp_case.c), by the libgomp.so.1 in FOLDER,
stand still with tasks in known states. Exits with 77, which ctest shows as skipped, where there is
no gdb or no process may be traced.
"""
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "imbrex-gdb.py"
SKIPPED = 77
TWO_WORKERS = {"IMBREX_WORKERS": "2", "IMBREX_STACK_SIZE": "64K"}


def gdb(*arguments):
    result = subprocess.run(["gdb", "-nx", "-batch", "-ex", f"source {SCRIPT}", *arguments],
                            capture_output=True, text=True, check=False, timeout=120)
    return result.stdout, result.stderr


def commands(*texts):
    return [part for text in texts for part in ("-ex", text)]


def start(folder, its_program, **environment):
    """A process that stands still; it leaves a core file in `folder` if it is aborted."""
    hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    process = subprocess.Popen(
        [its_program], stdout=subprocess.PIPE, text=True, cwd=folder, env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                              (hard_limit, hard_limit)))
    assert process.stdout.readline() == "ready\n"
    return process


def core_file(folder):
    """Returns a core file of the kernel: gdb's own leaves out memory behind a guard of the stacks,
    which has no mapping of its own. None if the kernel hands cores to a program."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if "/" in pattern or "|" in pattern or hard_limit != resource.RLIM_INFINITY:
        print(f"core file: skipped: core_pattern is {pattern}, the limit of its size {hard_limit}")
        return None
    process = start(folder, program, **TWO_WORKERS)
    process.stdout.close()
    process.send_signal(signal.SIGABRT)
    process.wait()
    return next(pathlib.Path(folder).glob("*core*"), None)


class Gdb(unittest.TestCase):
    targets = []  # arguments of gdb: the process; the program and its core file

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        process = start(folder.name, program, **TWO_WORKERS)
        cls.addClassCleanup(process.stdout.close)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.kill)
        out, error = gdb("-p", str(process.pid), *commands("info threads"))
        if "Thread" not in out:
            print(f"skipped: gdb could not trace the process: {out}{error}")
            sys.exit(SKIPPED)
        cls.targets = [["-p", str(process.pid)]]
        if (core := core_file(folder.name)) is not None:
            cls.targets.append([program, str(core)])

    def both(self, *texts):
        """Returns the output of the commands, for the live process and for the core file."""
        return [gdb(*target, *commands(*texts)) for target in self.targets]

    def row(self, text, name):
        rows = [line for line in text.splitlines() if f'"{name}"' in line.split("  ")]
        self.assertEqual(len(rows), 1, text)
        return rows[0]

    def task_id(self, name):
        return self.row(gdb(*self.targets[0], *commands("imbrex tasks"))[0], name).split()[0]

    def test_tasks_are_listed_with_state_site_and_what_they_wait_for(self):
        for text, error in self.both("imbrex tasks"):
            site = r"\S*suspended_case\.cpp:\d+"
            first = self.row(text, "waits for an event")
            self.assertRegex(first, rf"^\d+ +suspended +\"waits for an event\" +{site} +event$")
            number = first.split()[0]
            self.assertRegex(self.row(text, "depends on it"),
                             rf"not started .* {site} +task {number} \"waits for an event\"$")
            self.assertRegex(self.row(text, "waits for a promise"),
                             rf"suspended .* {site} +promise \"the answer\" \({site}\)$")
            self.assertRegex(self.row(text, "runs"), r"running .* - \(runs on worker \d\)$")
            self.assertRegex(self.row(text, "main"), r"suspended .* finish$")
            self.assertIn("\n5 tasks\n", text, error)

    def test_the_stack_of_a_suspended_task_is_shown_to_its_end(self):
        number = self.task_id("waits for an event")
        for text, error in self.both(f"imbrex stack {number}", "frame function innermost"):
            text = text[text.index(f"task {number} "):]  # gdb shows where the process stands first
            numbers = re.findall(r"^#(\d+) ", text, re.MULTILINE)
            self.assertEqual([int(number) for number in numbers], list(range(len(numbers))), text)
            names = re.findall(r"^#\d+ .*?(\w+) \((?!anonymous)", text, re.MULTILINE)
            self.assertEqual(names.count("innermost"), 1, text + error)
            self.assertGreaterEqual(names.count("deeper"), 1)
            self.assertLess(names.index("innermost"), names.index("deeper"))
            self.assertEqual(names[-1], "start")  # the fiber's entry: nothing beyond
            self.assertNotIn("corrupt", text + error)
            self.assertIn("No frame for function", error)  # all is as before

    def test_main_suspended_on_its_native_stack_is_shown_too(self):
        for text, error in self.both(f"imbrex stack {self.task_id('main')}"):
            self.assertRegex(text, r"#\d+ .*\bmain \(\)", error)

    def test_an_object_without_a_stack_is_refused(self):
        for name, words in (("depends on it", "has no stack: not started"),
                            ("runs", "is not suspended")):
            for _, error in self.both(f"imbrex stack {self.task_id(name)}"):
                self.assertIn(words, error)
        for _, error in self.both("imbrex stack 987654321"):
            self.assertIn("no task 987654321", error)
        for _, error in self.both("imbrex stack x"):
            self.assertIn("usage: imbrex stack ID", error)

    def test_a_process_without_imbrex_is_refused(self):
        _, error = gdb(sys.executable, *commands("imbrex tasks"))
        self.assertIn("no libimbrex.so with its symbols here", error)

    def test_tasks_of_openmp_are_called_by_their_lines(self):
        source = pathlib.Path(__file__).resolve().parent / "omp_case.c"
        lines = source.read_text(encoding="utf-8").splitlines()
        with tempfile.TemporaryDirectory() as folder:
            process = start(folder, omp_program, LD_LIBRARY_PATH=omp_folder)
            with process.stdout:
                text, error = gdb("-p", str(process.pid), *commands("imbrex tasks"))
                process.kill()
                process.wait()
        for mark, state in (("runs", "running"), ("depends on it", "not started")):
            line = 1 + next(i for i, text in enumerate(lines) if f"/* {mark} */" in text)
            own = rf"({line}|{line + 1})"  # the compiler's function begins at either
            self.assertRegex(text, rf'\n\d+ +{state} +"main:{own}" .*omp_case\.c:{own} ', error)


if __name__ == "__main__":
    program, omp_program, omp_folder = sys.argv[1:4]
    del sys.argv[1:4]
    if shutil.which("gdb") is None:
        print("skipped: gdb is not installed")
        sys.exit(SKIPPED)
    unittest.main()
