# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex simulate`: runs a program on a simulated cluster, under the library's policies.

This file has the command line, the files of networks and kernels, and the output. The program
imbrex-simulate (src/simulate) simulates; it gets one word NAME=VALUE for each setting.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

import imbrex_config
import imbrex_run
from imbrex_errors import CommandError

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = HERE / "networks"
PROGRAMS = {
    "cholesky": "tiled Cholesky factorisation, as `tiled cholesky`: --n, --tile, --grid, "
                "--lookahead, --kernels",
    "stencil1d": "1-D stencil, as `stencil1d --variants tasks`: --size, --ghost, --chunks, "
                 "--steps, --cell-ns, --boundary"}
# The sizes of each program, with their defaults. None: the user must give the size.
SIZES = {"cholesky": {"n": None, "tile": 512}, "stencil1d": {"size": None, "ghost": None,
                                                             "chunks": 4, "steps": 100}}
MACHINE = {"ranks": 1, "workers": 1, "per-node": 1}
RESULTS = ("policy", "ranks", "workers", "seconds", "in_task", "idle", "overhead", "tasks",
           "messages", "bytes")
INTERNAL = ("events", "live_tasks")  # in a record, for work on the simulator
# The operations of one kernel on tiles of b x b: multiply by b^3.
CHOLESKY_FLOPS = {"potrf": 1 / 3, "trsm": 1, "syrk": 1, "gemm": 2}
# Parameters of a network: the name in a file, the name in imbrex-simulate, and the conversion.
PARAMETERS = {
    "latency_us": ("latency_ns", lambda us: 1e3 * us),
    "overhead_us": ("overhead_ns", lambda us: 1e3 * us),
    "gap_us": ("gap_ns", lambda us: 1e3 * us),
    "gbit_per_s": ("ns_per_byte", lambda rate: 8 / rate),
    "copy_gbit_per_s": ("copy_ns_per_byte", lambda rate: 8 / rate),
    "eager_bytes": ("eager_bytes", int),
    "sender_answers": ("sender_answers", int),
    "node_latency_us": ("node_latency_ns", lambda us: 1e3 * us),
    "node_gbit_per_s": ("node_ns_per_byte", lambda rate: 8 / rate),
    "noise": ("noise", float)}
RATES = {"gbit_per_s", "copy_gbit_per_s", "node_gbit_per_s"}
TIMES = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
TASK_BYTES = 640  # of a live task: measured


def add_to(commands):
    parser = commands.add_parser(
        "simulate", help="predict a program's time on a simulated cluster, under each policy",
        usage="imbrex simulate PROGRAM [options]",
        description="Simulates a program on ranks, workers and a network that need not exist, with "
        "the code of the library's own policies. Prints the simulated time. `imbrex simulate "
        "--list` shows programs, networks and policies.")
    parser.add_argument("program", nargs="?", metavar="PROGRAM",
                        help="the program to simulate: " + " or ".join(PROGRAMS))
    parser.add_argument("--list", action="store_true", help="show programs, networks and policies")
    for name, text in (("n", "rows of the matrix"), ("tile", "rows of a tile (default 512)"),
                       ("size", "cells of all ranks"), ("ghost", "cells of a ghost layer"),
                       ("chunks", "tasks of a rank's core in a step (default 4)"),
                       ("steps", "steps of the stencil (default 100)"),
                       ("ranks", "number of ranks (default 1)"),
                       ("workers", "workers of each rank (default 1)"),
                       ("per-node", "ranks that share a node and its NIC (default 1)"),
                       ("lookahead", "steps whose received tiles are in memory at once (default: "
                        "all)"), ("window", "value of IMBREX_WINDOW (default 512)"),
                       ("seed", "seed of the noise (default 1)")):
        parser.add_argument(f"--{name}", type=whole, metavar="N", help=text)
    parser.add_argument("--cell-ns", type=amount, metavar="X", help="time of a cell of the stencil")
    parser.add_argument("--boundary", choices=("periodic", "open"), default="periodic",
                        help="boundary of the stencil (default periodic)")
    parser.add_argument("--slow", metavar="RANK:FACTOR",
                        help="make the kernels of this rank take FACTOR times as long")
    parser.add_argument("--grid", metavar="PxQ", help="grid of ranks (default: nearly square)")
    parser.add_argument("--policy", metavar="P,...", default="default",
                        help="value of IMBREX_POLICY; each of several gets a simulation")
    parser.add_argument("--network", metavar="NAME|FILE", default="edr",
                        help="a network of --list, or a file (default edr)")
    parser.add_argument("--kernels", metavar="FILE|NAME=TIME,...",
                        help="times of kernels, as gemm=6ms, or rates, as gemm=40gflops")
    parser.add_argument("--creator-us", type=amount, default=0.2, metavar="X",
                        help="time to create a task (default 0.2)")
    parser.add_argument("--task-us", type=amount, default=0.2, metavar="X",
                        help="time to begin and end a task (default 0.2)")
    parser.add_argument("--progress", default="auto", metavar="MODE",
                        choices=("auto", "poll", "callback", "dedicated-thread"),
                        help="value of IMBREX_PROGRESS (default auto)")
    parser.add_argument("--points", metavar="POINT,...", help="run several simulations, as "
                        "n=40960:ranks=1,n=51712:ranks=2")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE")
    parser.set_defaults(run=run, parser=parser)


def whole(text):
    if not re.fullmatch("[0-9]+", text) or int(text) > 10 ** 12:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(text)


def amount(text):
    value = float(text)
    if not 0 <= value < 1e12:
        raise argparse.ArgumentTypeError(f"{text} is not a time")
    return value


def run(options):
    if options.list:
        print_list()
        return
    if options.program not in PROGRAMS:
        options.parser.error(f"there is no program {options.program}" if options.program else
                             "name a program, or --list")
    network = read_network(options.network)
    kernels = read_kernels(options.kernels) if options.program == "cholesky" else {}
    policies = [valid_policy(policy) for policy in options.policy.split(",")]
    # All mistakes are found before the first simulation starts.
    jobs = [(point, policy, words(options, point, policy, network, kernels))
            for point in read_points(options) for policy in policies]
    if options.json:
        check_writable(options.json)
    program = find_program()
    records = []
    first = next(iter(SIZES[options.program]))
    print(heading(first))
    for point, policy, settings in jobs:
        say_size(options.program, point)
        record = point["sizes"] | simulate(program, settings)
        records.append(record)
        print(line_of(record, first), flush=True)
    if len(policies) > 1:
        print_ranking(records, len(policies), first)
    if options.json:
        write_json(options.json, records)


# ---- what is simulated -------------------------------------------------------------------------

def read_points(options):
    """Each point as a dictionary: what the options say, and what --points changes."""
    defaults = SIZES[options.program] | MACHINE
    base = {}
    for name, default in defaults.items():
        given = getattr(options, name.replace("-", "_"))
        base[name] = default if given is None else given
    names = [*defaults]
    if options.program == "cholesky":
        base["grid"] = options.grid
        names.append("grid")
    points = []
    for text in options.points.split(",") if options.points else [""]:
        point = dict(base)
        for word in filter(None, text.split(":")):
            name, equals, value = word.partition("=")
            if not equals or name not in names:
                raise CommandError(f"--points: {word}: give NAME=VALUE, of {', '.join(names)}")
            if name != "grid" and not re.fullmatch("[0-9]{1,12}", value):
                raise CommandError(f"--points: {word}: not a whole number")
            point[name] = value if name == "grid" else int(value)
        points.append(checked(point, [*SIZES[options.program]]))
    return points


def checked(point, sizes):
    for name in (*sizes, *MACHINE):
        if point[name] is None:
            raise CommandError(f"--{name} is missing")
        if point[name] < 1:
            raise CommandError(f"--{name} {point[name]}: give 1 or more")
    if max(point["ranks"], point.get("tile", 0), point.get("chunks", 0),
           point.get("steps", 0)) > 2 ** 20 or point["workers"] > 4096:
        raise CommandError("at most 1,048,576 ranks, rows of a tile, chunks and steps, and 4,096 "
                           "workers a rank")
    point["sizes"] = {name: point[name] for name in sizes}
    return with_grid(point) if "grid" in point else point


def with_grid(point):
    grid = re.fullmatch("([0-9]{1,9})x([0-9]{1,9})", point["grid"] or "1x1")
    if grid is None:
        raise CommandError(f"--grid {point['grid']}: give ROWSxCOLUMNS, as 4x8")
    rows, columns = map(int, grid.groups()) if point["grid"] else nearly_square(point["ranks"])
    if rows * columns != point["ranks"]:
        raise CommandError(f"--grid {point['grid']} is not for {point['ranks']} ranks")
    return point | {"rows": rows, "columns": columns}


def nearly_square(ranks):
    rows = max(rows for rows in range(1, int(ranks ** 0.5) + 1) if ranks % rows == 0)
    return rows, ranks // rows


def valid_policy(text):
    try:
        imbrex_run.policy(text)
    except argparse.ArgumentTypeError as error:
        raise CommandError(f"--policy: {error}") from None
    if text.startswith("seeded"):
        raise CommandError("--policy seeded runs one worker at a time: it says nothing of speed")
    return text


def words(options, point, policy, network, kernels):
    """The settings of one simulation, for imbrex-simulate."""
    def chosen(value, default):
        return default if value is None else value

    slow_rank, slowness = slow_of(options.slow, point["ranks"])
    settings = {"program": options.program, "slow_rank": slow_rank, "slowness": slowness,
                "marks": int(policy in ("ma1", "ma2", "ma3", "sa", "priority")),
                "ranks": point["ranks"], "workers": point["workers"],
                "per_node": point["per-node"], "policy": policy,
                "window": chosen(options.window, 512),
                "creator_ns": round(1e3 * options.creator_us),
                "task_ns": round(1e3 * options.task_us), "progress": options.progress,
                "seed": chosen(options.seed, 1), "shows_progress": int(sys.stderr.isatty())}
    if options.program == "cholesky":
        times = kernel_times(kernels, CHOLESKY_FLOPS, point["tile"])
        settings |= {"rows": point["rows"], "columns": point["columns"],
                     "lookahead": chosen(options.lookahead, 0)}
        settings |= {f"kernel.{name}": time for name, time in times.items()}
    else:
        if options.cell_ns is None:
            raise CommandError("--cell-ns is missing: give the time of a cell")
        settings |= {"cell_ns": options.cell_ns, "periodic": int(options.boundary == "periodic")}
    return [f"{name}={value}" for name, value in (settings | network | point["sizes"]).items()]


def slow_of(text, ranks):
    if text is None:
        return -1, 1.0
    given = re.fullmatch(r"([0-9]{1,9}):([0-9]*\.?[0-9]+)", text)
    if given is None or not 0.01 <= float(given[2]) <= 100:
        raise CommandError(f"--slow {text}: give RANK:FACTOR with a factor from 0.01 to 100")
    if int(given[1]) >= ranks:
        raise CommandError(f"--slow {text}: there are {ranks} ranks, numbered from 0")
    return int(given[1]), float(given[2])


# ---- files -------------------------------------------------------------------------------------

def entries_of(path):
    """(line number, name, value) of a file of NAME = VALUE; # begins a comment."""
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{path}: no text") from None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name or not value:
            raise CommandError(f"{path}:{number}: not NAME = VALUE: {line}")
        yield number, name, value


def network_path(name):
    preset = NETWORKS / f"{name}.network"
    if re.fullmatch("[a-z0-9-]+", name) and preset.is_file():
        return preset
    if os.path.isfile(name):
        return name
    raise CommandError(f"--network {name}: neither a file nor a network; networks: "
                       f"{', '.join(network_names())}")


def network_names():
    return sorted(path.stem for path in NETWORKS.glob("*.network"))


def read_network(name):
    path = network_path(name)
    found = {}
    for number, parameter, value in entries_of(path):
        if parameter not in PARAMETERS:
            raise CommandError(f"{path}:{number}: there is no parameter {parameter}; valid: "
                               f"{', '.join(PARAMETERS)}")
        try:
            amount_given = float(value)
        except ValueError:
            raise CommandError(f"{path}:{number}: {parameter}: not a number: {value}") from None
        if not 0 <= amount_given < 1e12 or (parameter in RATES and amount_given == 0):
            raise CommandError(f"{path}:{number}: {parameter} = {value}: out of range")
        word, convert = PARAMETERS[parameter]
        found[word] = convert(amount_given)
    missing = [parameter for parameter, (word, _) in PARAMETERS.items()
               if word not in found and parameter != "noise"]
    if missing:
        raise CommandError(f"{path}: missing: {', '.join(missing)}")
    return {"noise": 0} | found


def read_kernels(text):
    """Kernels by name, each with (number, unit, where it was given)."""
    if text is None:
        raise CommandError("--kernels is missing: give the time of a kernel, as gemm=6ms")
    if not os.path.isfile(text) and "=" not in text:
        raise CommandError(f"--kernels {text}: neither a file nor NAME=TIME, as gemm=6ms")
    if not os.path.isfile(text):
        entries = []
        for word in text.split(","):
            name, equals, value = word.partition("=")
            if not equals:
                raise CommandError(f"--kernels: not NAME=TIME: {word}")
            entries.append(("--kernels", name, value))
    else:
        entries = [(f"{text}:{number}", name, value) for number, name, value in entries_of(text)]
    kernels = {}
    for where, name, value in entries:
        given = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)(ns|us|ms|s|gflops)", value)
        if name not in CHOLESKY_FLOPS:
            raise CommandError(f"{where}: there is no kernel {name}; valid: "
                               f"{', '.join(CHOLESKY_FLOPS)}")
        if given is None or not float(given[1]) > 0:
            raise CommandError(f"{where}: {name}={value}: give a time above 0, as 6ms, or a rate, "
                               "as 40gflops")
        kernels[name] = (float(given[1]), given[2])
    return kernels


def kernel_times(kernels, flops, tile):
    """Returns nanoseconds by kernel. A kernel without a given time runs at the rate of gemm."""
    given = {name: number * TIMES[unit] if unit in TIMES else flops[name] * tile ** 3 / number
             for name, (number, unit) in kernels.items()}
    if "gemm" not in given and set(given) != set(flops):
        raise CommandError("--kernels: give gemm, from which other times follow, or all of "
                           f"{', '.join(flops)}")
    return {name: round(given.get(name, given.get("gemm", 0) * flops[name] / flops["gemm"]))
            for name in flops}


# ---- running -----------------------------------------------------------------------------------

def find_program():
    folder = imbrex_config.find_folder()
    core = json.loads((folder / "core.json").read_text(encoding="utf-8"))
    root = pathlib.Path(os.path.normpath(folder.parent / core["prefix"]))
    program = root / core.get("libexecdir", "libexec/imbrex") / "imbrex-simulate"
    if not program.is_file():
        raise CommandError(f"there is no {program}: this imbrex was built without it")
    return program


def simulate(program, settings):
    done = subprocess.run([program, *settings], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise CommandError("the simulation failed" if done.returncode > 0 else
                           f"the simulation died by signal {-done.returncode}: out of memory?")
    return json.loads(done.stdout)


def say_size(program, point):
    """Before a large simulation: what it needs. Nearly all tasks may be live at once."""
    if program == "cholesky":
        tiles = -(-point["n"] // point["tile"])
        messages = tiles * (tiles + 1) // 2 * (point["rows"] + point["columns"] - 2)
        tasks = tiles ** 2 + tiles * (tiles - 1) * (tiles - 2) // 6 + 3 * messages
    else:
        tasks = point["ranks"] * point["steps"] * (point["chunks"] + 6)
    if tasks < 1_000_000:
        return
    gib = tasks * TASK_BYTES / 2 ** 30
    print(f"imbrex simulate: about {tasks / 1e6:.1f} million tasks, at most {gib:.1f} GiB of "
          "memory", file=sys.stderr)


# ---- output ------------------------------------------------------------------------------------

def heading(first):
    return (f"{first:>8} {'ranks':>6} {'workers':>7}  {'policy':<9} {'seconds':>10} {'in task':>8} "
            f"{'idle':>7} {'overhead':>8} {'tasks':>10} {'messages':>9} {'GB':>9}")


def line_of(record, first):
    return (f"{record[first]:>8} {record['ranks']:>6} {record['workers']:>7}  "
            f"{record['policy']:<9} {record['seconds']:>10.4f} {record['in_task']:>8.1%} "
            f"{record['idle']:>7.1%} {record['overhead']:>8.2%} {record['tasks']:>10} "
            f"{record['messages']:>9} {record['bytes'] / 1e9:>9.2f}")


def print_ranking(records, policies, first):
    """The policies of each point, from the fastest on, with bars."""
    for _, group in itertools.groupby(enumerate(records), lambda pair: pair[0] // policies):
        ranked = sorted((record for _, record in group), key=lambda record: record["seconds"])
        slowest = ranked[-1]["seconds"] or 1
        best = ranked[0]
        print(f"\n{first} = {best[first]}, {best['ranks']} ranks of {best['workers']}:")
        for record in ranked:
            ratio = record["seconds"] / (best["seconds"] or 1)
            print(f"  {record['policy']:<9} {ratio:>6.3f}  "
                  f"{'#' * round(40 * record['seconds'] / slowest)}")


def print_list():
    print("programs")
    for name, text in PROGRAMS.items():
        print(f"  {name:<16} {text}")
    print("networks (files of " + str(NETWORKS) + ")")
    for name in network_names():
        first = next(line for line in (NETWORKS / f"{name}.network").read_text(
            encoding="utf-8").splitlines() if line.startswith("#") and "SPDX" not in line)
        print(f"  {name:<16} {first.lstrip('# ')}")
    print("policies\n  " + ", ".join(name for name in imbrex_run.policies()
                                     if not name.startswith("seeded")))


def check_writable(path):
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise CommandError(f"--json {path}: cannot be written")


def write_json(path, records):
    """All or nothing: a reader never finds half a file."""
    text = json.dumps([{name: value for name, value in record.items() if name not in INTERNAL}
                       for record in records], indent=1) + "\n"
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/stdout, a pipe
        pathlib.Path(path).write_text(text, encoding="utf-8")
        return
    part = f"{path}.part"
    pathlib.Path(part).write_text(text, encoding="utf-8")
    os.replace(part, path)
