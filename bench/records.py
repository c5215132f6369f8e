# SPDX-License-Identifier: BSD-3-Clause
"""The frame of the benchmarks: their common options, the build, commands under mpirun and
tools/netlab, systems that take turns, and the results: rows with a median, a least and a most
value, which are printed and kept in bench.json. A script states its cases."""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
NETLAB = SOURCE / "tools" / "netlab"
NETLAB_CANNOT = 77
CORES = str(len(os.sched_getaffinity(0)))
# A peer that ran more than this share of the bodies inside the call that created them did not
# queue: its figure is shown, but the ratio is not taken to it.
INLINE_LIMIT = 0.1


class Failed(Exception):
    """A program that did not deliver a measurement; its text says why."""


def say(text=""):
    print(text, flush=True)


def progress(text):
    """One line on stderr that the next one replaces, if a person watches."""
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


# ---- options -----------------------------------------------------------------------------------


def options(doc, repetitions, prints_rows=True):
    """Returns a parser with the options that every script has; the script adds its own."""
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=repetitions,
                        help=f"number of repetitions (default {repetitions})")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build",
                        help="build directory (default: build)")
    parser.add_argument("--no-build", action="store_true",
                        help="run the programs as they were built before")
    if prints_rows:
        parser.add_argument("--json", action="store_true",
                            help="print a line of JSON for each row, instead of the table")
    return parser


def parse(parser):
    arguments = parser.parse_args()
    if arguments.repetitions < 1:
        parser.error("--repetitions: at least 1")
    arguments.build = arguments.build.resolve()
    return arguments


# ---- the build ---------------------------------------------------------------------------------


def cache_value(build, name):
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


def prepare(arguments, programs, libraries=(), peers=""):
    """Builds, and ends the script if a program is missing: it would fail in every case. The target
    `peers` may fail."""
    if not arguments.no_build:
        build_programs(arguments.build, [*programs, *libraries], peers)
    missing = [name for name in programs if not (arguments.build / "bin" / name).exists()]
    if missing:
        raise SystemExit(f"bench: not built: {', '.join(missing)}. Build it: cmake --build "
                         f"{arguments.build} --target {' '.join(missing)}")
    arguments.mpi = MpiRunner(arguments.build)


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


# ---- running -----------------------------------------------------------------------------------


def execute(command, environment, timeout_s):
    """Runs a program and returns its output."""
    try:
        done = subprocess.run(list(map(str, command)), timeout=timeout_s, capture_output=True,
                              text=True, check=False,
                              env={**os.environ, **{n: str(v) for n, v in environment.items()}})
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {timeout_s} s") from None
    if done.returncode == NETLAB_CANNOT and str(command[0]) == str(NETLAB):
        raise SystemExit(f"bench: {done.stderr.strip()}")
    if done.returncode != 0:
        tail = " | ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        code = done.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise Failed(f"{how}: {tail[:400]}")
    return done.stdout


def run_json(command, environment, timeout_s):
    """The JSON objects that a program prints, one a line."""
    lines = [json.loads(line) for line in execute(command, environment, timeout_s).splitlines()
             if line.startswith("{")]
    if not lines:
        raise Failed("it printed no measurement")
    return lines


def run_file(make_command, environment, timeout_s):
    """Returns the text that a program writes to a file: make_command(path) is the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run.json"
        execute(make_command(path), environment, timeout_s)
        if not path.exists():
            raise Failed("it wrote no figures")
        return json.loads(path.read_text())


def simulate(imbrex, *words):
    """The records of `imbrex simulate` with these words, one for each policy and point. A program
    of its own may follow `--`."""
    return run_file(lambda path: [imbrex, "simulate", "--json", path, *words], {}, None)


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

    def command(self, ranks, program, arguments, environment, bind="", before=(), rate="",
                per_rank=False, mtu=0):
        """`bind` is what ranks are bound to ("": as mpirun does), `before` words before the
        program, `rate` that of tools/netlab ("": without it), and `mtu` its packets (0: its
        default). The environment is that of the program alone."""
        options = ["--oversubscribe", "--bind-to", bind] if self.yields and bind else []
        own = ["env", *(f"{name}={value}" for name, value in environment.items())]
        network = []
        if rate:
            network = [NETLAB, "--rate", rate, *(["--mtu", mtu] if mtu else []),
                       *(["--per-rank"] if per_rank else []), "--"]
        return list(map(str, [*network, self.mpirun, *options, "-n", ranks, *before,
                              *(own if environment else []), self.build / "bin" / program,
                              *arguments]))

    def run(self, *command, timeout_s=300, **more):
        """The JSON objects that it prints; the arguments are those of command()."""
        return run_json(self.command(*command, **more), self.environment, timeout_s)

    def run_file(self, ranks, program, arguments, environment, timeout_s=900, **more):
        """Returns the text that the program writes to its file --json."""
        return run_file(lambda path: self.command(ranks, program, [*arguments, "--json", path],
                                                  environment, **more),
                        self.environment, timeout_s)


def take_turns(plan, repetitions, run, text=lambda entry: " ".join(map(str, entry))):
    """Returns {place in the plan: {repetition: run(entry)}}. Every other repetition goes backwards,
    so that no entry always runs behind one neighbour. A failed entry is reported, and the others go
    on."""
    found = {place: {} for place in range(len(plan))}
    for repetition in range(repetitions):
        places = range(len(plan)) if repetition % 2 == 0 else reversed(range(len(plan)))
        for index, place in enumerate(places):
            what = text(plan[place])
            progress(f"[{repetition * len(plan) + index + 1}/{repetitions * len(plan)}] {what}")
            try:
                found[place][repetition] = run(plan[place])
            except Failed as error:
                say(f"bench: {what}: {error}")
    progress("")
    return found


def by_system(entries):
    """{case: {system: [line of each repetition]}}, of (case, system, line)."""
    found = {}
    for case, system, line in entries:
        found.setdefault(case, {}).setdefault(system, []).append(line)
    return found


def known_policies(wanted, program, *words):
    """Those of the wanted policies that the program's runtime has; the others are named. It lists
    its policies when it refuses one; `words` make it run."""
    done = subprocess.run([str(program), *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "IMBREX_POLICY": "?"})
    found = re.search(r"valid: ([^\n]*)", done.stderr)
    if done.returncode == 0 or not found:
        raise SystemExit(f"bench: the policies cannot be found out: {done.stderr.strip()[-300:]}")
    known = re.split(r"[ ,]+", found.group(1))
    for policy in (policy for policy in wanted if policy not in known):
        say(f"bench: WARNING: this runtime has no policy {policy}: left out")
    return [policy for policy in wanted if policy in known]


# ---- what comes out ----------------------------------------------------------------------------


def row(benchmark, system, workers, values, unit, digits=3):
    return {"benchmark": benchmark, "system": system, "workers": workers,
            f"median_{unit}": round(statistics.median(values), digits),
            f"min_{unit}": round(min(values), digits), f"max_{unit}": round(max(values), digits),
            "repetitions": len(values)}


def set_target(line, text, reached):
    line.update(target=text, reached=bool(reached))


def ratios(ours, others, value):
    """Of the same repetition, {repetition: result}: neighbours in time, so that the machine's drift
    cancels."""
    return [value(ours[at]) / value(others[at]) for at in ours if at in others]


def print_table(rows):
    width = max(len(line["benchmark"]) for line in rows)
    across = max(len(line["system"]) for line in rows)
    say(f"\n{'case':<{width}}{'w':>4}  {'system':<{across}}{'median':>17}{'least':>17}{'most':>17}")
    for line in rows:
        unit = next(key for key in line if key.startswith("median_")).removeprefix("median_")
        figures = [f"{kind}_{unit}" for kind in ("median", "min", "max")]
        digits = 1 if abs(line[figures[0]]) >= 100 else 3
        shown = ("benchmark", "workers", "system", "repetitions", "target", "reached", *figures)
        notes = [f"{key} {value}" for key, value in line.items() if key not in shown]
        if "target" in line:
            notes.append(f"{line['target']}, {'reached' if line['reached'] else 'NOT REACHED'}")
        say((f"{line['benchmark']:<{width}}{line['workers']:>4}  {line['system']:<{across}}"
             + "".join(f"{line[key]:>17,.{digits}f}" for key in figures)
             + f" {unit:<7} {'; '.join(notes)}").rstrip())


def report(arguments, rows):
    """Prints the rows and keeps them."""
    if not rows:
        raise SystemExit("bench: nothing could be measured")
    if arguments.json:
        for line in rows:
            say(json.dumps(line))
    else:
        print_table(rows)
    save(arguments.build, rows)


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
