# SPDX-License-Identifier: BSD-3-Clause
"""What bench/compare and bench/instructions share: the build, running a program that prints JSON
lines, and the list of records in bench.json."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
CORES = str(len(os.sched_getaffinity(0)))


class Failed(Exception):
    """A program that did not deliver a measurement; its text says why."""


def say(text=""):
    print(text, flush=True)


def progress(text):
    """One line on stderr that the next one replaces, if a person watches."""
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def cache_value(build, name):
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


def build_programs(build, required, optional):
    """Configures `build`, which names the peers that are missing, and builds. The target
    `optional` may fail, for instance at a peer of another version: it is said, and we go on."""
    new = not (build / "CMakeCache.txt").exists()
    generator = ["-G", "Ninja"] if new and shutil.which("ninja") else []
    configure = ["cmake", "-S", str(SOURCE), "-B", str(build), *generator]
    say("$ " + " ".join(configure))
    done = subprocess.run(configure, capture_output=True, text=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        if done.returncode != 0 or "bench:" in line:
            say(line)
    if done.returncode != 0:
        raise SystemExit("bench: cmake failed")
    check_kind(build)
    if not run_shown(["cmake", "--build", str(build), "-j", CORES, "--target", *required]):
        raise SystemExit("bench: the build failed")
    if optional and not run_shown(["cmake", "--build", str(build), "--target", optional]):
        say("bench: WARNING: not everything could be built (see above): goes on without it")


def check_kind(build):
    sanitize = cache_value(build, "IMBREX_SANITIZE")
    if sanitize:
        raise SystemExit(f"bench: {build} is built with IMBREX_SANITIZE={sanitize}, whose figures "
                         "mean nothing; give another directory with --build")
    build_type = cache_value(build, "CMAKE_BUILD_TYPE")
    if build_type not in ("RelWithDebInfo", "Release"):
        say(f"bench: WARNING: {build} is a {build_type} build: its figures are no measure")
    if cache_value(build, "IMBREX_BUILD_APPS") == "OFF":
        raise SystemExit(f"bench: {build} has IMBREX_BUILD_APPS=OFF, and so no benchmarks")


def run_shown(command):
    say("$ " + " ".join(command))
    return subprocess.run(command, check=False).returncode == 0


def run_json(command, environment, timeout_s):
    """Runs a program; the JSON objects that it printed, one a line."""
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, timeout=timeout_s,
                              capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {timeout_s} s") from None
    if done.returncode != 0:
        tail = " | ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        code = done.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise Failed(f"{how}: {tail[:400]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed("it printed no measurement")
    return lines


class MpiRunner:
    """Starts programs by the mpirun of the MPI that the build uses."""

    def __init__(self, build):
        self.build = build
        self.mpirun = cache_value(build, "MPIEXEC_EXECUTABLE") or "mpirun"
        version = subprocess.run([self.mpirun, "--version"], capture_output=True, text=True,
                                 check=False).stdout
        self.yields = any(name in version for name in ("Open MPI", "OpenRTE", "PRRTE"))
        self.environment = {name: "1" for name in (
            "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
            "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM")}

    def run(self, ranks, program, arguments, bind, environment):
        """`bind` is what ranks are bound to. The environment is that of the program alone."""
        options = ["--oversubscribe", "--bind-to", bind] if self.yields else []
        own = ["env", *(f"{name}={value}" for name, value in environment.items())]
        command = [self.mpirun, *options, "-n", str(ranks), *(own if environment else []),
                   str(self.build / "bin" / program), *map(str, arguments)]
        return run_json(command, self.environment, 300)


def key_of(record):
    return (record["benchmark"], record["system"], record["workers"])


def save(build, records):
    """Replaces the records of the same benchmark, system and workers; keeps all others."""
    path = build / "bench.json"
    old = json.loads(path.read_text()) if path.exists() else []
    new_keys = {key_of(record) for record in records}
    merged = [record for record in old if key_of(record) not in new_keys] + records
    rows = ",\n".join("  " + json.dumps(record) for record in merged)
    path.write_text(f"[\n{rows}\n]\n")
    say(f"\n{len(records)} records written to {path}")
