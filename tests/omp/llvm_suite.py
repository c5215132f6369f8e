#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs LLVM's own tests of its OpenMP runtime against our libomp.so.5.

Each test is built once by clang-19 with the stock library, and run under the stock library and
under ours with each number of threads. Says which tests pass under the stock library and not under
ours;
ends with 1 if there are any. The sources are those of Debian's package: --archive names
llvm-toolchain-19_*.orig.tar.xz, which `apt-get source --download-only llvm-toolchain-19` fetches.
Needed: apt-get install clang-19 libomp-19-dev llvm-19-tools
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

LLVM = pathlib.Path("/usr/lib/llvm-19")
LIT = LLVM / "build/utils/lit/lit.py"
# Left out: the interfaces for tools and debuggers, where libomp binds threads, offload.
LEFT_OUT = ("affinity", "ompt", "ompd", "target", "taskgraph")
LEFT_OUT_NAMES = (
    "hidden_helper", "omp_record_replay", "taskgraph", "target_thread_limit",
    # They read libomp's internal structures.
    "kmp_task_deps_multiple_edges",
    # They check variables of libomp that imbrex names in a warning and does not read.
    "kmp_dispatch_buf_range",  # KMP_DISP_NUM_BUFFERS
    "omp_fill_taskqueue",      # KMP_ENABLE_TASK_THROTTLING
)

SITE = """
config.test_c_compiler = "{compiler} clang-19"
config.test_cxx_compiler = "{compiler} clang++-19"
config.test_compiler_features = ["clang", "clang-19", "clang-19.1"]
config.test_compiler_has_omp_h = True
config.test_filecheck = "{llvm}/bin/FileCheck"
config.test_not = "{llvm}/bin/not"
config.test_openmp_flags = "-fopenmp"
config.test_extra_flags = ""
config.libomp_obj_root = "{folder}/run"
config.library_dir = "{llvm}/lib"
config.omp_header_directory = "{llvm}/lib/clang/19/include"
config.operating_system = "Linux"
config.hwloc_library_dir = ""
config.using_hwloc = False
config.has_ompt = False
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
config.substitutions.insert(0, ("%libomp-run", "timeout " + os.environ["SUITE_LIMIT_S"] + " %t"))
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
                if "/openmp/runtime/test/" in member.name:
                    tar.extract(member, folder)
        found = list(folder.glob("*/openmp/runtime/test"))
    return found[0]


def prepare(folder, tests):
    (folder / "built").mkdir(parents=True, exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    compiler = folder / "compiler"
    compiler.write_text(COMPILER.format(folder=folder))
    compiler.chmod(0o755)
    (folder / "run" / "lit.site.cfg").write_text(
        SITE.format(folder=folder, llvm=LLVM, tests=tests, compiler=compiler))


def is_run(tests, path):
    name = str(path.relative_to(tests))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, required=True,
                        help="for sources and binaries")
    parser.add_argument("--archive", type=pathlib.Path, help="the sources, at the first time")
    parser.add_argument("--library", type=pathlib.Path, required=True,
                        help="the folder of our libomp.so.5")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")],
                        default=[1, 2, 8], help="OMP_NUM_THREADS, several with commas")
    parser.add_argument("--only", default="", help="a part of the names; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit-s", type=int, default=60, help="seconds for one run")
    parser.add_argument("--verbose", action="store_true", help="the output of failing tests")
    arguments = parser.parse_args()
    arguments.folder = arguments.folder.resolve()
    arguments.library = arguments.library.resolve()
    tests = unpack(arguments.folder, arguments.archive)
    prepare(arguments.folder, tests)
    names = sorted(str(path.relative_to(tests)) for path in tests.rglob("*")
                   if is_run(tests, path) and arguments.only in str(path))
    passing, failing = set(), set()
    for threads in arguments.threads:
        stock = run(arguments, LLVM / "lib", threads, names)
        passed = [name for name, (passes, _) in stock.items() if passes]
        ours = run(arguments, arguments.library, threads, passed)
        passing |= set(passed)
        for name in passed:
            passes, output = ours.get(name, (False, "did not run"))
            if not passes:
                failing.add(name)
                print(f"{name}: with {threads} threads", flush=True)
                if arguments.verbose:
                    print(output)
    print(f"{len(names)} tests, {len(passing)} pass under the stock library, "
          f"{len(passing - failing)} of these under ours")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
