#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs libgomp's own test suite, from Debian's package gcc-12-source, against our libgomp.so.1.

Each run test is built once by the stock compiler, and run under the stock library and under ours
with each number of threads. Says which tests pass under the stock library and not under ours; ends
with 1 if there are any. The package must be installed: apt-get install gcc-12-source
"""
import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import time

ARCHIVE = pathlib.Path("/usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz")
COMPILERS = {".c": "gcc", ".C": "g++", ".f90": "gfortran", ".f": "gfortran", ".F90": "gfortran",
             ".f95": "gfortran"}
FOLDERS = ("libgomp.c", "libgomp.c-c++-common", "libgomp.c++", "libgomp.fortran")
TEXT = r"[^{}]"
for _ in range(4):  # so deep are the braces of conditions
    TEXT = rf"(?:{TEXT}|\{{{TEXT}*\}})"
DIRECTIVE = re.compile(rf"\{{\s*dg-([\w-]+)({TEXT}*)\}}")


class Test:
    """One file of the suite, and what its comments ask for."""

    def __init__(self, path, root):
        self.path = path
        self.name = str(path.relative_to(root))
        self.options, self.sources, self.variables = ["-O2", "-fopenmp"], [], {}
        self.runs, self.should_fail = True, False
        for kind, rest in DIRECTIVE.findall(path.read_text(errors="replace")):
            self.read(kind, rest)

    def read(self, kind, rest):
        quoted = re.findall(r'"([^"]*)"', rest)
        words = rest.replace('"', " ").split()
        if kind == "do":
            self.runs = bool(words) and words[0] == "run"
        elif kind in ("options", "additional-options") and quoted and "{ target" not in rest:
            self.options += shlex.split(quoted[0])
        elif kind == "additional-sources":
            self.sources += [str(self.path.parent / word) for word in words]
        elif kind == "set-target-env-var" and len(words) > 1:
            self.variables[words[0]] = words[1]
        elif kind == "shouldfail":
            self.should_fail = True

    def binary(self, folder):
        return folder / (self.name.replace("/", "_") + ".exe")


def unpack(folder):
    root = folder / "gcc-12.2.0" / "libgomp" / "testsuite"
    if not root.exists():
        if not ARCHIVE.exists():
            sys.exit(f"suite.py: {ARCHIVE} is not there: apt-get install gcc-12-source")
        with tarfile.open(ARCHIVE) as archive:
            for member in archive:
                if member.name.startswith(("gcc-12.2.0/libgomp/", "gcc-12.2.0/include/")):
                    archive.extract(member, folder)
    return root


def find_tests(root, patterns):
    tests = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in COMPILERS:
                continue
            test = Test(path, root)
            if test.runs and any(fnmatch.fnmatch(test.name, pattern) for pattern in patterns):
                tests.append(test)
    return tests


def build(test, folder, root):
    """The binary, or None if the stock compiler cannot make it here."""
    binary = test.binary(folder)
    failed = binary.with_suffix(".failed")
    if failed.exists():
        return None
    if not binary.exists():
        command = [COMPILERS[test.path.suffix], "-w", str(test.path), *test.sources, *test.options,
                   f"-I{root.parent}", f"-I{root.parent.parent / 'include'}", "-o", str(binary),
                   "-lm"]
        modules = folder / "modules" / binary.stem
        modules.mkdir(parents=True, exist_ok=True)
        if subprocess.run(command, cwd=modules, capture_output=True, check=False).returncode != 0:
            failed.touch()
            return None
    return binary


def run(test, binary, library, threads, limit_s):
    """"" if the test passes, else what happened."""
    variables = dict(os.environ, **test.variables)
    if threads:
        variables["OMP_NUM_THREADS"] = str(threads)
    if library:
        variables["LD_LIBRARY_PATH"] = str(library)
    try:
        result = subprocess.run([binary], env=variables, timeout=limit_s, capture_output=True,
                                stdin=subprocess.DEVNULL, cwd=binary.parent, check=False)
    except subprocess.TimeoutExpired:
        return f"no end after {limit_s} s"
    if (result.returncode != 0) != test.should_fail:
        said = result.stderr.decode(errors="replace").strip().splitlines()
        return f"code {result.returncode}: {said[0][:150] if said else ''}"
    return ""


def compare(test, arguments, root):
    """(name, stock passes, {threads: what ours does wrong}, seconds of stock, of ours)"""
    binary = build(test, arguments.folder, root)
    if binary is None:
        return test.name, False, {}, 0.0, 0.0
    wrong, stock_s, ours_s = {}, 0.0, 0.0
    passes = False
    for threads in arguments.threads:
        begin = time.monotonic()
        if run(test, binary, None, threads, arguments.limit_s):
            continue
        passes = True
        middle = time.monotonic()
        what = run(test, binary, arguments.library, threads, arguments.limit_s)
        stock_s += middle - begin
        ours_s += time.monotonic() - middle
        if what:
            wrong[threads] = what
    return test.name, passes, wrong, stock_s, ours_s


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, required=True,
                        help="for sources and binaries")
    parser.add_argument("--library", type=pathlib.Path, required=True,
                        help="the folder of our libgomp.so.1")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")],
                        default=[1, 2, 8], help="OMP_NUM_THREADS, several with commas")
    parser.add_argument("--only", action="append", help="shell patterns of names; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit-s", type=int, default=60, help="seconds for one run")
    arguments = parser.parse_args()
    arguments.folder = arguments.folder.resolve()
    arguments.library = arguments.library.resolve()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    root = unpack(arguments.folder)
    tests = find_tests(root, arguments.only or ["*"])
    built, failures, stock_s, ours_s = 0, 0, 0.0, 0.0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, passes, wrong, stock, ours in pool.map(
                lambda test: compare(test, arguments, root), tests):
            built += passes
            failures += bool(wrong)
            stock_s += stock
            ours_s += ours
            if wrong:
                print(f"{name}: {wrong}", flush=True)
    print(f"{len(tests)} tests, {built} pass under the stock library, {built - failures} of these "
          f"under ours; {stock_s:.0f} s and {ours_s:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
