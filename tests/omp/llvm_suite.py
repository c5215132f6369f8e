#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs LLVM's own tests of its OpenMP runtime against our libomp.so.5.

Each test is built once by clang-19 with the stock library, and run under ours with each number of
threads. Those that fail are then run under the stock library. Says which tests pass under the stock
library and not under ours; ends with 1 if there are any. The sources are those of Debian's package:
--archive names llvm-toolchain-19_*.orig.tar.xz, which `apt-get source --download-only
llvm-toolchain-19` fetches.
Needed: apt-get install clang-19 libomp-19-dev llvm-19-tools

With --tools it runs the tests of OMPT instead, which check what a tool is told; with --gcc, too,
they are built by GCC, for our libgomp.so.1. GCC's own library has no OMPT, so nothing is compared
then: which tests fail is said, and why for those that are known.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

LLVM = pathlib.Path("/usr/lib/llvm-19")
LIT = LLVM / "build/utils/lit/lit.py"
# Left out: the interfaces for tools and debuggers, where libomp binds threads, offload.
TOOLS = "ompt"
LEFT_OUT = ("affinity", "ompt", "ompd", "target", "taskgraph")
LEFT_OUT_NAMES = (
    "hidden_helper", "omp_record_replay", "taskgraph", "target_thread_limit",
    # They read libomp's internal structures.
    "kmp_task_deps_multiple_edges",
    # They check variables of libomp that imbrex names in a warning and does not read.
    "kmp_dispatch_buf_range",  # KMP_DISP_NUM_BUFFERS
    "omp_fill_taskqueue",      # KMP_ENABLE_TASK_THROTTLING
)

# Tests of OMPT that expect of a runtime what the standard leaves open.
NO_LEAGUE = "no event tells of a league"
QUEUED = "a task of a team of one is queued, and not run at once"
TOOLS_LEFT_OUT = {
    "cancel/cancel_taskgroup": "expects the thread that runs a task",
    "misc/api_calls_from_other_thread": "the state of a thread without OpenMP is undefined, not 0",
    "misc/api_calls_without_ompt": "the state of a thread without OpenMP is undefined, not 0",
    "misc/interoperability": "expects 0 threads at the end of an initial task",
    "parallel/parallel_if0": QUEUED, "parallel/serialized": QUEUED,
    "tasks/task_types_serialized": QUEUED, "tasks/task_early_fulfill": QUEUED,
    "tasks/task_late_fulfill": QUEUED,
    "tasks/serialized": "the frame of a task that the program runs in place is that of the call",
    "synchronization/ordered_dependences": "no event tells of ordered(n) loops",
    "synchronization/reduction/tree_reduce": "reductions use atomics, and are not told of then",
    "teams/parallel_team": NO_LEAGUE, "teams/serial_teams": NO_LEAGUE,
    "teams/serialized": NO_LEAGUE, "teams/team": NO_LEAGUE,
    "worksharing/for/auto.c": "schedule(auto) is static", "worksharing/for/auto_split":
    "schedule(auto) is static", "worksharing/for/guided_serialized": "a guided loop stays guided",
}
BY_PROGRAM = "the program prints before it calls the runtime for the first time"
PLAIN = "GCC ends this construct by a call that is an explicit barrier"
NO_CONTROL = "GCC's omp.h has no omp_control_tool"
TOOLS_LEFT_OUT_OF_GCC = {
    **TOOLS_LEFT_OUT, **{f"worksharing/for/{name}": BY_PROGRAM for name in ("dynamic", "guided",
                                                                          "runtime")},
    "synchronization/barrier/for_loop": PLAIN, "synchronization/barrier/for_simd": PLAIN,
    "synchronization/barrier/single": PLAIN,
    "loadtool/tool_available_search": NO_CONTROL, "loadtool/tool_not_available": NO_CONTROL,
    "misc/control_tool": NO_CONTROL,
    "tasks/task_if0-depend": "GCC passes the dependences with the task",
    # Expected to fail with GCC, as libomp does; here they pass.
    "cancel/cancel_parallel": "passes", "tasks/taskyield": "passes", "worksharing/single": "passes",
}

SITE = """
config.test_c_compiler = "{compiler} {cc}"
config.test_cxx_compiler = "{compiler} {cxx}"
config.test_compiler_features = {features}
config.test_compiler_has_omp_h = True
config.test_filecheck = "{llvm}/bin/FileCheck"
config.test_not = "{llvm}/bin/not"
config.test_openmp_flags = "-fopenmp"
config.test_extra_flags = ""
config.libomp_obj_root = "{folder}/run"
config.library_dir = "{llvm}/lib"
config.omp_header_directory = "{headers}"
config.operating_system = "Linux"
config.hwloc_library_dir = ""
config.using_hwloc = False
config.has_ompt = True
config.has_ompx_taskgraph = False
config.has_libm = True
config.has_libatomic = False
config.is_standalone_build = True
config.has_omit_frame_pointer_flag = True
config.target_arch = "x86_64"
lit_config.load_config(config, "{tests}/lit.cfg")
import os
for name in ("OMP_NUM_THREADS",):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["LD_LIBRARY_PATH"] = os.environ["SUITE_LIBRARIES"]
limited = "timeout " + os.environ["SUITE_LIMIT_S"] + " %t"
config.substitutions = [(name, limited if name == "%libomp-run" else text)
                        for name, text in config.substitutions]
"""

# The binary of each command is kept, so that every run has the same.
COMPILER = """#!/bin/sh
out=; last=
for word; do
  [ "$last" = -o ] && out=$word
  last=$word
done
kept={folder}/built/$(printf '%s ' "$@" | md5sum | cut -c1-32)
if [ -n "$out" ] && [ -e "$kept" ]; then exec cp "$kept" "$out"; fi
"$@" || exit $?
[ -z "$out" ] || cp "$out" "$kept"
"""


def unpack(folder, archive):
    found = list(folder.glob("*/openmp/runtime/test"))
    if not found:
        if archive is None:
            sys.exit("llvm_suite.py: name the sources by --archive")
        with tarfile.open(archive) as tar:
            for member in tar:
                if ("/openmp/runtime/test/" in member.name
                        or member.name.endswith("/openmp/runtime/src/kmp_platform.h")):
                    tar.extract(member, folder)
        found = list(folder.glob("*/openmp/runtime/test"))
    return found[0]


def compiler_of(folder, by_gcc):
    """The names of the compiler, what lit calls it, and the folder of omp-tools.h."""
    headers = LLVM / "lib/clang/19/include"
    if not by_gcc:
        return {"cc": "clang-19", "cxx": "clang++-19", "headers": headers,
                "features": ["clang", "clang-19", "clang-19.1"]}
    own = folder / "headers"  # without clang's other headers
    own.mkdir(exist_ok=True)
    shutil.copy(headers / "omp-tools.h", own)
    return {"cc": "gcc -w", "cxx": "g++ -w", "headers": own,
            "features": ["gcc", "gcc-12", "gcc-12.2"]}


def prepare(folder, tests, by_gcc):
    (folder / "built").mkdir(parents=True, exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    compiler = folder / "compiler"
    compiler.write_text(COMPILER.format(folder=folder))
    compiler.chmod(0o755)
    (folder / "run" / "lit.site.cfg").write_text(
        SITE.format(folder=folder, llvm=LLVM, tests=tests, compiler=compiler,
                    **compiler_of(folder, by_gcc)))


def reason_for_leaving_out(name, by_gcc):
    """Why a test of OMPT is left out; None: it is not."""
    left_out = TOOLS_LEFT_OUT_OF_GCC if by_gcc else TOOLS_LEFT_OUT
    return next((reason for part, reason in left_out.items()
                 if name.startswith(f"{TOOLS}/{part}")), None)


def is_run(tests, path, arguments):
    name = str(path.relative_to(tests))
    if arguments.tools:
        return (path.suffix in (".c", ".cpp") and name.startswith(TOOLS + "/")
                and reason_for_leaving_out(name, arguments.gcc) is None)
    return (path.suffix in (".c", ".cpp") and name.split("/")[0] not in LEFT_OUT and
            not any(part in name for part in LEFT_OUT_NAMES))


def run(arguments, library, threads, names):
    """Name -> whether the test passed, without those that do not run here."""
    result = arguments.folder / "result.json"
    result.unlink(missing_ok=True)
    # lit reads a pattern for names from LIT_FILTER.
    environment = dict(os.environ, SUITE_LIBRARIES=str(library),
                       SUITE_LIMIT_S=str(arguments.limit_s),
                       LIT_FILTER="|".join(f":: {re.escape(name)}$" for name in names))
    environment.pop("OMP_NUM_THREADS", None)
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    done = subprocess.run([sys.executable, LIT, "-q", f"-j{arguments.jobs}", "-o", result,
                           arguments.folder / "run"], env=environment, capture_output=True,
                          text=True, check=False)
    if not result.exists():
        sys.exit(f"llvm_suite.py: lit failed: {done.stderr}")
    outcomes = json.loads(result.read_text())["tests"]
    return {test["name"].split(" :: ")[1]: (test["code"] in ("PASS", "XFAIL", "FLAKYPASS"),
                                             test["output"])
            for test in outcomes if test["code"] not in ("UNSUPPORTED", "UNRESOLVED", "SKIPPED")}


def run_alone(arguments, names):
    """Runs tests for which there is no stock library."""
    failing = set()
    for threads in arguments.threads:
        ours = run(arguments, arguments.library, threads, names)
        for name in sorted(name for name, (passes, _) in ours.items() if not passes):
            failing.add(name)
            print(f"{name}: with {threads} threads", flush=True)
            if arguments.verbose:
                print(ours[name][1])
        print(f"with {threads} threads {len(ours)} tests run", flush=True)
    return 1 if failing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, required=True,
                        help="for sources and binaries")
    parser.add_argument("--archive", type=pathlib.Path, help="the sources, at the first time")
    parser.add_argument("--library", type=pathlib.Path, required=True,
                        help="the folder of our libomp.so.5")
    parser.add_argument("--tools", action="store_true", help="the tests of OMPT")
    parser.add_argument("--gcc", action="store_true", help="built by GCC; with --tools")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")],
                        default=[1, 2, 8], help="OMP_NUM_THREADS, several with commas")
    parser.add_argument("--only", default="", help="a part of the names; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit-s", type=int, default=900, help="seconds for one run")
    parser.add_argument("--verbose", action="store_true", help="the output of failing tests")
    arguments = parser.parse_args()
    arguments.folder = arguments.folder.resolve()
    arguments.library = arguments.library.resolve()
    tests = unpack(arguments.folder, arguments.archive)
    prepare(arguments.folder, tests, arguments.gcc)
    names = sorted(str(path.relative_to(tests)) for path in tests.rglob("*")
                   if is_run(tests, path, arguments) and arguments.only in str(path))
    if arguments.gcc:
        return run_alone(arguments, names)
    good = True
    for threads in arguments.threads:
        ours = run(arguments, arguments.library, threads, names)
        failed = [name for name, (passes, _) in ours.items() if not passes]
        stock = run(arguments, LLVM / "lib", threads, failed) if failed else {}
        ours_only = [name for name in failed if stock.get(name, (False, ""))[0]]
        for name in ours_only:
            print(f"{name}: with {threads} threads", flush=True)
            if arguments.verbose:
                print(ours[name][1])
        print(f"with {threads} threads {len(ours)} tests run: {len(ours) - len(failed)} pass, "
              f"{len(failed) - len(ours_only)} fail under the stock library, too, "
              f"{len(ours_only)} under ours only", flush=True)
        good = good and not ours_only
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
