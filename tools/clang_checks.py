#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the source by clang, without building it.

`locks` checks in every file of src/ that sees a guarded lock (src/base/guarded.hpp) that guarded
data are touched only while the lock is held. `tidy` runs the checks of .clang-tidy.
The compile commands of a configured tree say how each file is compiled. Exit status: 0 no finding,
1 findings, 77 clang is not installed.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = "19"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
UNITY = re.compile(r"unity_\d+_cxx\.cxx$")  # in which CMake puts several files together
GUARDED = re.compile(r"\bIMBREX_(?:PT_)?GUARDED_BY\(|\bIMBREX_REQUIRES\(")
# GCC's declaration of a function of the C++ run-time library; libc++ has none.
NOT_WITH_LIBCXX = {"src/fiber/fiber.cpp"}
# A header that only GCC brings.
NOT_WITH_CLANG = {"src/trace/symbols_debug.cpp"}
# Two guarded variables that are written without their locks.
BREACH = """
#include <mutex>
#include "base/spin_lock.hpp"
struct Breach {
  std::mutex mutex;
  imbrex::base::SpinLock lock;
  int first IMBREX_GUARDED_BY(mutex);
  int second IMBREX_GUARDED_BY(lock);
  void write() { first = second = 1; }
};
"""
# Headers that most files include, read once.
OFTEN_INCLUDED = """algorithm array atomic chrono condition_variable deque exception functional list
map memory mutex random set shared_mutex source_location span string thread unordered_map variant
vector fmt/format.h""".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    locks = commands.add_parser("locks", help="run clang's analysis of thread safety")
    tidy = commands.add_parser("tidy", help="run clang-tidy on src/, or on its changed files")
    for command, what in ((locks, "check only files that changed since this branch left COMMIT, or "
                           "that name a changed file in an #include; all files if there is no such "
                           "commit"),
                          (tidy, "check only files that changed since this branch left COMMIT; if "
                           "there is no such commit, check --most files")):
        command.add_argument("--since", metavar="COMMIT", help=what)
    for command in (locks, tidy):
        command.add_argument("--most", metavar="COUNT", type=int, help="check at most COUNT files")
        command.add_argument("--tree", type=pathlib.Path, default=ROOT / "build",
                             help="a configured build directory (default: build)")
        command.add_argument("--jobs", type=int, default=os.cpu_count(),
                             help="files that are checked at once (default: one a processor)")
        command.add_argument("files", nargs="*", help="check these files only")
    arguments = parser.parse_args()
    compiled = read_commands(arguments.tree)
    if arguments.files:
        wanted = {pathlib.Path(name).resolve().relative_to(ROOT).as_posix()
                  for name in arguments.files}
        compiled = {name: flags for name, flags in compiled.items() if name in wanted}
    check = {"locks": check_locks, "tidy": check_tidy}[arguments.what]
    return check(compiled, arguments)


def read_commands(tree):
    """Each file of ours that the tree compiles, and the flags that say what its text means."""
    compiled = {}
    for command in json.loads((tree / "compile_commands.json").read_text()):
        paths = [pathlib.Path(command["file"])]
        if UNITY.match(paths[0].name):
            paths = [pathlib.Path(name) for name in INCLUDE.findall(paths[0].read_text())]
        words = shlex.split(command["command"])
        flags = [word for word in words if word.startswith(("-D", "-I", "-std"))]
        for at, word in enumerate(words[:-1]):
            if word in ("-isystem", "-include"):
                flags += words[at:at + 2]
        for path in paths:
            if (path.suffix == ".cpp" and path.is_relative_to(ROOT) and
                    not path.is_relative_to(tree)):
                compiled.setdefault(path.relative_to(ROOT).as_posix(), flags)
    return compiled


def find_tool(name):
    return shutil.which(f"{name}-{VERSION}")


def skip(name, package):
    print(f"tools/clang_checks.py: skipped: no {name}-{VERSION} (Debian's package {package})")
    return 77


def run_all(commands, jobs):
    """Runs the commands, by name; prints what they say. The number of those that fail."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = {name: pool.submit(subprocess.run, command, cwd=ROOT, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for name, command in commands.items()}
        for name, result in results.items():
            if result.result().returncode != 0:
                failed += 1
                print(f"---- {name}\n{result.result().stdout}", flush=True)
    return failed


def at_most(count, names):
    """So many of the names, spread over the folders, the same ones each time."""
    return names[::-(-len(names) // count)] if count and len(names) > count else names


# ---- locks -------------------------------------------------------------------------------------

def check_locks(compiled, arguments):
    clang = find_tool("clang++")
    if clang is None:
        return skip("clang++", "clang-19")
    base = [clang, "-stdlib=libc++", "-fexperimental-library",
            "-D_LIBCPP_ENABLE_THREAD_SAFETY_ANNOTATIONS",
            "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
    # libstdc++ does not say that std::mutex is a lock; the option gives libc++ 19 std::stop_token.
    probe = subprocess.run([*base, "-std=c++20", "-Isrc", "-fsyntax-only", "-x", "c++", "-"],
                           input=BREACH, text=True, capture_output=True, cwd=ROOT)
    if "'mutex' file not found" in probe.stderr:
        return skip("libc++", "libc++-19-dev")
    if probe.stderr.count("requires holding mutex") != 2:
        print(f"tools/clang_checks.py: the analysis does not find a breach:\n{probe.stderr}")
        return 1
    names = [name for name in sorted(compiled) if name.startswith("src/")
             and not name.endswith("_test.cpp") and name not in NOT_WITH_LIBCXX
             and sees_a_lock(name)]
    changed = changed_since(arguments.since) if arguments.since else None
    if changed is not None:
        names = [name for name in names if not changed.isdisjoint({name, *includes(name)[1]})]
        if not names:
            print("tools/clang_checks.py locks: no changed file uses a guarded lock")
            return 0
    names = at_most(arguments.most, names)
    with tempfile.TemporaryDirectory() as folder:
        often = pathlib.Path(folder) / "often_included.hpp"
        often.write_text("".join(f"#include <{header}>\n" for header in OFTEN_INCLUDED))
        ready = pathlib.Path(folder) / "often_included.pch"
        subprocess.run([*base, "-std=c++20", "-x", "c++-header", often, "-o", ready], check=True)
        failed = run_all({name: [*base, *compiled[name], "-include-pch", str(ready),
                                 "-fsyntax-only", name] for name in names}, arguments.jobs)
    print(f"tools/clang_checks.py locks: {len(names)} files, {failed} with findings")
    return 1 if failed or not names else 0


@functools.lru_cache(maxsize=None)
def includes(name):
    """Returns whether the file has annotations, and which files of the project it includes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = []
    for header in INCLUDE.findall(text):
        places = ("src/" + header, "include/" + header, str(pathlib.PurePath(name).parent / header))
        found += [place for place in places if (ROOT / place).is_file()][:1]
    return GUARDED.search(text) is not None, found


def with_includes(name):
    """The file, and all of ours that it sees."""
    seen, ahead = {name}, [name]
    while ahead:
        found = includes(ahead.pop())[1]
        ahead += [other for other in found if other not in seen]
        seen.update(found)
    return seen


def sees_a_lock(name):
    return any(includes(seen)[0] for seen in with_includes(name))


# ---- tidy --------------------------------------------------------------------------------------

def check_tidy(compiled, arguments):
    tidy = find_tool("clang-tidy")
    if tidy is None:
        return skip("clang-tidy", "clang-tidy-19")
    names = sorted(name for name in compiled if name.startswith("src/")
                   and name not in NOT_WITH_CLANG
                   and (arguments.files or not name.endswith("_test.cpp")))
    if arguments.since:
        changed = changed_since(arguments.since)
        names = [name for name in names if changed is None or name in changed]
    names = at_most(arguments.most, names)
    failed = run_all({name: [tidy, "--quiet", name, "--", *compiled[name]] for name in names},
                     arguments.jobs)
    print(f"tools/clang_checks.py tidy: {len(names)} files, {failed} with findings")
    return 1 if failed else 0


def changed_since(commit):
    """The files that are not as where HEAD and `commit` part; None if that cannot be known."""
    base = subprocess.run(["git", "merge-base", "HEAD", commit], cwd=ROOT, text=True,
                          capture_output=True)
    if base.returncode != 0:
        return None
    return set(subprocess.run(["git", "diff", "--name-only", base.stdout.strip()], cwd=ROOT,
                              text=True, capture_output=True, check=True).stdout.split())


if __name__ == "__main__":
    sys.exit(main())
