# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex simulate`: runs a program on a simulated cluster, under the library's policies.

This file has the command line, the files of networks and kernels, and the output. The program
imbrex-simulate (src/simulate) simulates; it gets one word NAME=VALUE for each setting.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import imbrex_config
import imbrex_run
import imbrex_simulate_limits as limits
import imbrex_simulate_plot as plots
import imbrex_simulate_program as own
import imbrex_simulate_trace as recorded
from imbrex_errors import CommandError

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = HERE / "networks"
PROGRAMS = {
    "cholesky": "tiled Cholesky factorisation, as `tiled cholesky`: --n, --tile, --grid, "
                "--lookahead, --kernels",
    "stencil1d": "1-D stencil, as `stencil1d --variants tasks`: --size, --ghost, --chunks, "
                 "--steps, --cell-ns, --boundary",
    "stencil2d": "2-D stencil on data with owners, as `stencil2d --variant fixed`: --blocks, "
                 "--side, --steps, --hot, --kernels block=",
    "minife": "conjugate gradients, as `minife --variant tasks`: --n, --blocks, --iterations, "
              "--kernels multiply=,add=,dot=",
    "hpcg": "with multigrid, as `hpcg --variant tasks`: as minife, --kernels smooth=,multiply=,"
            "add=,dot=,fill=",
    "exchange": "compute, all-to-all, compute, as `fft`: --n, --chunks, --parts, --variant, "
                "--kernels line=",
    "wavefront": "Smith-Waterman, as `smith_waterman`: --rows, --columns, --outer-rows, "
                 "--outer-columns, --inner-rows, --inner-columns, --distribution, --kernels tile=",
    "pool": "search of an unbalanced tree by a work pool, as `uts`: --tree, --victims, --kernels "
            "node=",
    "broadcast": "dynamic broadcasts: --bytes, --rounds, --tree"}
# The sizes of each program, with their defaults. None: the user must give the size.
SIZES = {"cholesky": {"n": None, "tile": 512},
         "stencil1d": {"size": None, "ghost": None, "chunks": 4, "steps": 100},
         "stencil2d": {"blocks": 16, "side": 64, "steps": 100, "hot": 8},
         "minife": {"n": None, "blocks": 8, "iterations": 20},
         "hpcg": {"n": None, "blocks": 8, "iterations": 20},
         "exchange": {"n": None, "chunks": 16, "parts": 16},
         "wavefront": {"rows": None, "columns": None, "outer-rows": None, "outer-columns": None,
                       "inner-rows": 290, "inner-columns": 300},
         "pool": {"victims": 1},
         "broadcast": {"bytes": None, "rounds": 1},
         own.OWN: {}, recorded.RECORDED: {}}
# What else identifies a point of a program, with the default.
TEXTS = {"pool": {"tree": "T1"}, "broadcast": {"tree": "auto"},
         "wavefront": {"distribution": "block"}, "exchange": {"variant": "messages"},
         own.OWN: {"command": "", "tree": "auto"}, recorded.RECORDED: {"trace": ""}}
# Other options that only some programs have.
USED_BY = {"speed": (recorded.RECORDED,), "elsewhere-us": (own.OWN,), "combine-us": (own.OWN,),
           "cell-ns": ("stencil1d",), "grid": ("cholesky",), "lookahead": ("cholesky",),
           "boundary": ("stencil1d",),
           "slow": [name for name in SIZES if name not in ("pool", "broadcast")]}
MACHINE = {"ranks": 1, "workers": 1, "per-node": 1}
RESULTS = ("policy", "ranks", "workers", "seconds", "in_task", "idle", "overhead", "tasks",
           "messages", "bytes")
INTERNAL = ("events", "live_tasks", "sweep")  # in a record, and not in the JSON
# The operations of one kernel on tiles of b x b: multiply by b^3.
CHOLESKY_FLOPS = {"potrf": 1 / 3, "trsm": 1, "syrk": 1, "gemm": 2}
# The sizes that decide how many tasks a program has.
REDUCE = {"cholesky": ["n"], "stencil1d": ["steps", "chunks"], "stencil2d": ["blocks", "steps"],
          "minife": ["iterations", "blocks"], "hpcg": ["iterations", "blocks"],
          "exchange": ["chunks", "parts"], "wavefront": ["rows", "columns"],
          "broadcast": ["rounds"]}
KERNELS = {"cholesky": CHOLESKY_FLOPS, "stencil2d": ("block",),
           "minife": ("multiply", "add", "dot"),
           "hpcg": ("smooth", "multiply", "add", "dot", "fill"), "exchange": ("line",),
           "wavefront": ("tile",), "pool": ("node",)}
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
TIMES = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
USAGE = """imbrex simulate PROGRAM [options]
       imbrex simulate [options] -- YOUR_PROGRAM [arguments]
       imbrex simulate --trace DIRECTORY [options]"""


def add_to(commands):
    parser = commands.add_parser(
        "simulate", help="predict a program's time on a simulated cluster, under each policy",
        usage=USAGE,
        description="Simulates a program on ranks, workers and a network that need not exist, with "
        "the code of the library's own policies. `imbrex simulate --list` shows programs, networks "
        "and policies. YOUR_PROGRAM uses data with owners (imbrex::Space), and is started as one "
        "process. " + recorded.ABOUT)
    parser.add_argument("program", nargs="?", metavar="PROGRAM",
                        help="the program to simulate: " + " or ".join(PROGRAMS))
    parser.add_argument("--list", action="store_true", help="show programs, networks and policies")
    for name, text in (("n", "rows of the matrix"), ("tile", "rows of a tile (default 512)"),
                       ("size", "cells of all ranks"), ("ghost", "cells of a ghost layer"),
                       ("chunks", "stencil1d: tasks of a rank's core in a step (default 4); "
                        "exchange: tasks before it (default 16)"),
                       ("parts", "exchange: tasks of a rank after it (default 16)"),
                       ("steps", "steps of the stencil (default 100)"),
                       ("blocks", "stencil2d: of a row (default 16); minife, hpcg: sub-blocks of "
                        "a rank (default 8)"),
                       ("side", "cells of a block's row (default 64)"),
                       ("hot", "cost of a block in the hot spot (default 8)"),
                       ("iterations", "iterations of conjugate gradients (default 20)"),
                       ("rows", "letters of the first sequence"),
                       ("columns", "letters of the second one"),
                       ("outer-rows", "rows of an outer tile, which has an owner"),
                       ("outer-columns", "columns of an outer tile"),
                       ("inner-rows", "rows of a task's tile (default 290)"),
                       ("inner-columns", "columns of a task's tile (default 300)"),
                       ("victims", "ranks that a rank asks at random (default 1)"),
                       ("bytes", "bytes of a broadcast"),
                       ("rounds", "number of broadcasts (default 1)"),
                       ("ranks", "how many ranks (default 1)"),
                       ("workers", "workers of each rank (default 1)"),
                       ("per-node", "ranks that share a node and its NIC (default 1)"),
                       ("lookahead", "steps whose received tiles are in memory at once (default: "
                        "all)"), ("tasks-ahead", "value of IMBREX_TASKS_AHEAD (default 512)"),
                       ("seed", "seed of the noise (default 1)")):
        parser.add_argument(f"--{name}", type=typed(limits.whole, name), metavar="N", help=text)
    parser.add_argument("--cell-ns", type=amount("cell-ns"), metavar="X",
                        help="time of a cell of the stencil")
    parser.add_argument("--tree", metavar="NAME", help="pool: a tree of uts, as T1 (default); "
                        "broadcast: auto (default), star, binomial, chain, binary")
    add_choices(parser)
    parser.add_argument("--lend", action="store_true", help="ranks of a node lend each other the "
                        "processors of idle workers, as with IMBREX_LEND=1")
    parser.add_argument("--slow", metavar="RANK:FACTOR",
                        help="make the kernels of this rank take FACTOR times as long")
    parser.add_argument("--grid", metavar="PxQ", help="grid of ranks (default: nearly square)")
    parser.add_argument("--policy", metavar="P,...", default="default",
                        help="value of IMBREX_POLICY; each of several gets a simulation")
    parser.add_argument("--network", metavar="NAME|FILE", default="edr",
                        help="a network of --list, or a file (default edr)")
    parser.add_argument("--kernels", metavar="FILE|NAME=TIME,...",
                        help="times of kernels, as gemm=6ms, or rates, as gemm=40gflops")
    add_times(parser)
    parser.add_argument("--progress", default="auto", metavar="MODE",
                        choices=("auto", "poll", "callback", "dedicated-thread"),
                        help="value of IMBREX_PROGRESS (default auto)")
    parser.add_argument("--points", metavar="POINT,...", help="run several simulations, as "
                        "n=40960:ranks=1,n=51712:ranks=2")
    parser.add_argument("--sweep", metavar="OPTION=V,...", help="one simulation for each value of "
                        "any option, and a ranking, as ranks=4,8,16 or network=edr,hdr")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the times as bars")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE")
    own.add_options(parser, amount)
    recorded.add_options(parser, amount)
    parser.set_defaults(run=run, parser=parser, words_after=[], command=None)


def add_choices(parser):
    parser.add_argument("--boundary", choices=("periodic", "open"),
                        help="boundary of the stencil (default periodic)")
    parser.add_argument("--distribution", choices=("block", "cyclic"),
                        help="owners of outer tiles (default block)")
    parser.add_argument("--variant", choices=("blocking", "partial-receive", "partial-blocks",
                                              "messages"),
                        help="exchange: variant of fft (default messages)")


def add_times(parser):
    parser.add_argument("--creator-us", type=amount("creator-us"), metavar="X", help="time to "
                        f"create a task (default 0.2; of YOUR_PROGRAM {own.CREATOR_US})")
    parser.add_argument("--task-us", type=amount("task-us"), default=0.2, metavar="X",
                        help="time to begin and end a task (default 0.2)")
    parser.add_argument("--poll-gap-us", type=amount("poll-gap-us"), default=2000, metavar="X",
                        help="with --progress auto: time between two polls of its thread (default "
                        "2000)")
    parser.add_argument("--memory", type=amount("memory"), metavar="GIB", help="memory that a "
                        "simulation may need (default: what this machine has)")


def typed(convert, name):
    """The `type` of an option, which says what is valid."""
    def convert_text(text):
        try:
            return convert(text, name)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return convert_text


def amount(name):
    return typed(limits.number, name)


def run(options):
    if options.list:
        print_list()
        return
    refuse_empty(options)
    if options.words_after:
        if options.program is not None:
            options.parser.error(f"give {options.program} or a program behind --, not both")
        options.program = own.OWN
        options.command = os.path.basename(options.words_after[0])
        options.recorder = own.Recorder(options.words_after)
    elif options.trace is not None:
        if options.program is not None:
            options.parser.error(f"give {options.program} or --trace, not both")
        options.program = recorded.RECORDED
    elif options.program not in PROGRAMS:
        options.parser.error(f"there is no program {options.program}" if options.program else
                             "name a program, or --list")
    if options.plot and not options.plot.endswith(".svg"):
        raise CommandError(f"--plot {options.plot}: give a file that ends with .svg")
    # All mistakes are found before the first simulation starts.
    variants = sweep(options)
    for _, variant in variants:
        refuse_empty(variant)
        refuse_unused(variant)
    jobs = [job for value, variant in variants for job in jobs_of(variant, value)]
    needs = [size_of(options, point, policy) for _, point, policy, _ in jobs]
    for name, path in (("--json", options.json), ("--plot", options.plot)):
        if path:
            check_writable(name, path)
    program = imbrex_config.find_program("imbrex-simulate")
    records = []
    name = (options.sweep or "policy").partition("=")[0]
    first = next(iter({**TEXTS.get(options.program, {}), **SIZES[options.program]}))
    lacks = jobs[0][1]["recorded"].unrecorded() if options.trace is not None else ""
    if lacks:
        print(lacks)
    print(heading(first))
    for (value, point, _, settings), need in zip(jobs, needs):
        if need:
            print(f"imbrex simulate: {need}", file=sys.stderr)
        if options.trace is not None:
            point["recorded"].rebuild()
        record = point["sizes"] | simulate(program, settings) | {"sweep": value}
        records.append(record)
        print(line_of(record, first), flush=True)
    rankings = plots.rankings(records, first, name)
    for ranking in rankings:
        plots.print_ranking(ranking)
    if options.json:
        write_all(options.json, json.dumps([shown(record) for record in records], indent=1) + "\n")
    if options.plot:
        write_all(options.plot, plots.bars(rankings or [plots.all_of(records, first, name)]))


def refuse_empty(options):
    """An empty value is a mistake of a script, and not a default."""
    for action in options.parser._actions:
        if action.option_strings and getattr(options, action.dest, None) == "":
            raise CommandError(f"{action.option_strings[0]}: the value is empty")


def refuse_unused(options):
    """An option of another program would change nothing."""
    used = {**SIZES[options.program], **TEXTS.get(options.program, {}), **MACHINE}
    known = {name for sizes in (*SIZES.values(), *TEXTS.values(), USED_BY) for name in sizes}
    for name in sorted(known):
        if name in used or options.program in USED_BY.get(name, ()):
            continue
        if getattr(options, name.replace("-", "_")) is not None:
            raise CommandError(f"--{name} is not an option of "
                               f"{options.command or options.program}")
    if options.lend and options.program == "broadcast":
        raise CommandError("--lend is not an option of broadcast, which runs no tasks")
    if options.kernels is not None and options.program not in (*KERNELS, own.OWN,
                                                               recorded.RECORDED):
        raise CommandError(f"{options.program} has no --kernels")


def jobs_of(options, value):
    """(value of the sweep, point, policy, settings of imbrex-simulate) for each point and
    policy."""
    network = read_network(options.network)
    kernels = (read_kernels(options.kernels, KERNELS[options.program])
               if options.program in KERNELS else {})
    policies = [valid_policy(policy) for policy in options.policy.split(",")]
    if options.program == recorded.RECORDED:
        return jobs_of_trace(options, value, network, policies)
    points = read_points(options)
    for point in points if options.program == own.OWN else ():
        fixed = max(limits.fixed_bytes(point["ranks"], point["workers"], policy, False)
                    for policy in policies)
        limits.check(limits.Need(0, 0, fixed, "--ranks or --workers"), point["ranks"],
                     options.memory)
        point["recording"] = options.recorder.recording(point["ranks"])
    return [(value or policy, point, policy, words(options, point, policy, network, kernels))
            for point in points for policy in policies]


def jobs_of_trace(options, value, network, policies):
    """jobs_of() for a recorded run: the trace has the number of ranks, and that of workers unless
    the user gives another one."""
    run_of_trace = recorded.read_run(options.trace)
    machine = argparse.Namespace(**vars(options))
    for name in ("ranks", "workers"):
        if getattr(machine, name) is None:
            setattr(machine, name, getattr(run_of_trace, name))
    points = read_points(machine)
    for point in points:
        if point["ranks"] != run_of_trace.ranks:
            raise CommandError(f"--ranks {point['ranks']}: the trace in {options.trace} is of "
                               f"{run_of_trace.ranks} ranks, and is simulated on as many")
        point["recorded"] = run_of_trace
    return [(value or policy, point, policy, words(options, point, policy, network, {}))
            for point in points for policy in policies]


def sweep(options):
    """(value, options with this value) for each value of --sweep; without it, the options."""
    if options.sweep is None:
        return [("", options)]
    name, equals, values = options.sweep.partition("=")
    known = {action.option_strings[0].lstrip("-"): action for action in options.parser._actions
             if action.option_strings and action.nargs != 0}
    for word in ("sweep", "json", "plot", "points"):
        known.pop(word, None)
    if not equals or not values or name not in known:
        raise CommandError(f"--sweep {options.sweep}: give OPTION=VALUE,...; options: "
                           f"{', '.join(sorted(known))}")
    variants = []
    for value in values.split(";" if ";" in values else ","):
        action = known[name]
        changed = argparse.Namespace(**vars(options))
        try:
            setattr(changed, action.dest, action.type(value) if action.type else value)
        except argparse.ArgumentTypeError as error:
            raise CommandError(f"--sweep {name}={value}: {error}") from None
        if action.choices and value not in action.choices:
            raise CommandError(f"--sweep {name}={value}: valid: {', '.join(action.choices)}")
        variants.append((value, changed))
    return variants


def shown(record):
    return {name: value for name, value in record.items() if name not in INTERNAL}


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
    base["texts"] = TEXTS.get(options.program, {})
    for name, default in base["texts"].items():
        base[name] = getattr(options, name) or default
    points = []
    for text in options.points.split(",") if options.points else [""]:
        point, given = dict(base), set()
        for word in filter(None, text.split(":")):
            name, equals, value = word.partition("=")
            if not equals or name not in names:
                raise CommandError(f"--points: {word}: give NAME=VALUE, of {', '.join(names)}")
            if name in given:
                raise CommandError(f"--points: {text}: {name} is given twice")
            given.add(name)
            try:
                point[name] = value if name == "grid" else limits.whole(value, name)
            except ValueError as error:
                raise CommandError(f"--points: {name}={error}") from None
        points.append(checked(point, options.program))
    return points


def checked(point, program):
    sizes = SIZES[program]
    for name in sizes:
        if point[name] is None:
            raise CommandError(f"--{name} is missing")
    n_most = limits.N_MOST.get(program)
    if n_most is not None and point["n"] > n_most:
        raise CommandError(f"--n {point['n']}: {limits.range_of(1, n_most)} for {program}")
    if program == "broadcast" and point["ranks"] == 1:
        raise CommandError("--ranks 1: a broadcast needs 2 ranks or more")
    point["sizes"] = {name: point[name] for name in (*point["texts"], *sizes)}
    return with_grid(point) if "grid" in point else point


def with_grid(point):
    grid = re.fullmatch("([0-9]{1,9})x([0-9]{1,9})", point["grid"] or "", re.ASCII)
    if grid is None and point["grid"] is not None:
        raise CommandError(f"--grid {point['grid']}: give ROWSxCOLUMNS, as 4x8")
    rows, columns = map(int, grid.groups()) if grid else nearly_square(point["ranks"])
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
        raise CommandError("--policy seeded runs one worker at a time, so its times mean nothing")
    return text


def words(options, point, policy, network, kernels):
    """The settings of one simulation, for imbrex-simulate."""
    def chosen(value, default):
        return default if value is None else value

    slow_rank, slowness = slow_of(options.slow, point["ranks"])
    creator_us = chosen(options.creator_us, own.CREATOR_US if options.program == own.OWN else 0.2)
    settings = {"program": options.program, "slow_rank": slow_rank, "slowness": slowness,
                "ranks": point["ranks"], "workers": point["workers"],
                "per_node": point["per-node"], "lend": int(options.lend), "policy": policy,
                "tasks_ahead": chosen(options.tasks_ahead, 512),
                "creator_ns": round(1e3 * creator_us),
                "task_ns": round(1e3 * options.task_us), "progress": options.progress,
                "poll_gap_ns": round(1e3 * options.poll_gap_us),
                "seed": chosen(options.seed, 1), "shows_progress": int(sys.stderr.isatty())}
    marks = int(policy in ("ma1", "ma2", "ma3", "sa", "priority"))
    if options.program == "cholesky":
        times = kernel_times(kernels, CHOLESKY_FLOPS, point["tile"])
        settings |= {"rows": point["rows"], "columns": point["columns"], "marks": marks,
                     "lookahead": chosen(options.lookahead, 0)}
        settings |= {f"kernel.{name}": time for name, time in times.items()}
    elif options.program == "stencil1d":
        if options.cell_ns is None:
            raise CommandError("--cell-ns is missing: give the time of a cell")
        settings |= {"cell_ns": options.cell_ns, "marks": marks,
                     "periodic": int(options.boundary != "open")}
    elif options.program == "pool":
        settings |= {"node_ns": given_times(kernels, KERNELS["pool"])["node"]}
    elif options.program == own.OWN:
        recording = point["recording"]
        names = [name for name, _ in recording.names]
        times = given_times(read_kernels(options.kernels, names), names) if names else {}
        settings |= own.settings_of(recording, times,
                                    chosen(options.elsewhere_us, own.ELSEWHERE_US),
                                    chosen(options.combine_us, 0))
    elif options.program == recorded.RECORDED:
        run_of_trace = point["recorded"]
        given = read_kernels(options.kernels, run_of_trace.names) if options.kernels else {}
        settings |= run_of_trace.settings_of(given_times(given, given),
                                             chosen(options.speed, 1.0))
    elif options.program in KERNELS:
        settings |= {f"kernel.{name}": round(time) for name, time in
                     given_times(kernels, KERNELS[options.program]).items()}
    sizes = {name.replace("-", "_"): value for name, value in point["sizes"].items()}
    for name in ("command", "trace"):
        sizes.pop(name, None)
    if options.program == "wavefront":
        settings["cyclic"] = int(sizes.pop("distribution") == "cyclic")
    return [f"{name}={value}" for name, value in (settings | network | sizes).items()]


def slow_of(text, ranks):
    if text is None:
        return -1, 1.0
    given = re.fullmatch(r"([0-9]{1,9}):([0-9]*\.?[0-9]+)", text, re.ASCII)
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
        word, convert = PARAMETERS[parameter]
        if word in found:
            raise CommandError(f"{path}:{number}: {parameter} is given twice")
        try:
            found[word] = convert(limits.parameter(value, parameter))
        except ValueError as error:
            raise CommandError(f"{path}:{number}: {error}") from None
    missing = [parameter for parameter, (word, _) in PARAMETERS.items()
               if word not in found and parameter != "noise"]
    if missing:
        raise CommandError(f"{path}: missing: {', '.join(missing)}")
    return {"noise": 0} | found


def read_kernels(text, names):
    """Those of `names` that are given: each with (number, unit)."""
    example = f"{[*names][-1]}=6ms"
    if text is None:
        raise CommandError(f"--kernels is missing: give the time of a kernel, as {example}")
    if not os.path.isfile(text) and "=" not in text:
        raise CommandError(f"--kernels {text}: neither a file nor NAME=TIME, as {example}")
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
        given = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)(ns|us|ms|s|gflops)", value,
                             re.ASCII)
        if name not in names:
            raise CommandError(f"{where}: there is no kernel {name}; valid: {', '.join(names)}")
        if given is None or not float(given[1]) > 0 or (
                given[2] == "gflops" and names is not CHOLESKY_FLOPS):
            raise CommandError(f"{where}: {name}={value}: give a time above 0, as 6ms, or a rate, "
                               "as 40gflops")
        if name in kernels:
            raise CommandError(f"{where}: {name} is given twice")
        kernels[name] = (float(given[1]), given[2])
        if given[2] != "gflops":
            check_time(f"{where}: {name}={value}", kernels[name][0] * TIMES[given[2]])
    return kernels


def check_time(where, nanoseconds):
    if not nanoseconds <= limits.KERNEL_NS_MOST:
        raise CommandError(f"{where}: a kernel takes at most "
                           f"{limits.shown(limits.KERNEL_NS_MOST // 10 ** 9)} s")


def given_times(kernels, names):
    missing = [name for name in names if name not in kernels]
    if missing:
        raise CommandError(f"--kernels: missing: {', '.join(missing)}")
    return {name: kernels[name][0] * TIMES[kernels[name][1]] for name in names}


def kernel_times(kernels, flops, tile):
    """Returns nanoseconds by kernel. A kernel without a given time runs at the rate of gemm."""
    given = {name: number * TIMES[unit] if unit in TIMES else flops[name] * tile ** 3 / number
             for name, (number, unit) in kernels.items()}
    for name, time in given.items():
        check_time(f"--kernels: {name}, on a tile of {tile}", time)
    if "gemm" not in given and set(given) != set(flops):
        raise CommandError("--kernels: give gemm, from which other times follow, or all of "
                           f"{', '.join(flops)}")
    return {name: round(given.get(name, given.get("gemm", 0) * flops[name] / flops["gemm"]))
            for name in flops}


# ---- running -----------------------------------------------------------------------------------

def simulate(program, settings):
    done = subprocess.run([program, *settings], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise CommandError("the simulation failed" if done.returncode > 0 else
                           f"the simulation died by signal {-done.returncode}: out of memory?")
    return json.loads(done.stdout)


def size_of(options, point, policy):
    """Before the first simulation: what one needs, in words. Nearly all tasks may be live at once.
    Throws CommandError for a simulation that does not fit."""
    program, ranks = options.program, point["ranks"]
    is_carried = program in ("broadcast", "pool")
    workers = point["workers"] * (min(point["per-node"], ranks) if options.lend else 1)
    fixed = limits.fixed_bytes(ranks, workers, policy, is_carried)
    if program == recorded.RECORDED:
        fixed += point["recorded"].bytes
    tasks, live = tasks_of(program, point)
    reduced = [f"--{name}" for name in REDUCE.get(program, ())] + ["--ranks"]
    reduced += ["--workers"] if point["workers"] > 64 else []
    text = limits.check(limits.Need(tasks, live, fixed, " or ".join(reduced)), ranks,
                        options.memory)
    return point["recorded"].size_in_words() if program == recorded.RECORDED else text


def tasks_of(program, point):
    """How many tasks there are, and at most at once."""
    ranks = point["ranks"]
    if program == "cholesky":
        tiles = -(-point["n"] // point["tile"])
        messages = tiles * (tiles + 1) // 2 * (point["rows"] + point["columns"] - 2)
        tasks = tiles ** 2 + tiles * (tiles - 1) * (tiles - 2) // 6 + 3 * messages
    elif program == "stencil1d":
        tasks = ranks * point["steps"] * (point["chunks"] + 6)
    elif program == "stencil2d":
        tasks = point["blocks"] ** 2 * point["steps"]
    elif program in ("minife", "hpcg"):
        loops = 4 if program == "minife" else 19
        tasks = ranks * point["iterations"] * (loops * point["blocks"] + 60)
    elif program == "exchange":
        chunks = point["chunks"] if point["variant"] == "messages" else 1
        parts = 1 if point["variant"] == "blocking" else point["parts"]
        tasks = 2 * (ranks * min(chunks, point["n"])) * (ranks * parts)
    elif program == own.OWN:
        tasks = point["recording"].tasks
    elif program == "wavefront":
        tiles = [-(-point[side] // point[f"outer-{side}"]) for side in ("rows", "columns")]
        inner = [-(-point[f"outer-{side}"] // point[f"inner-{side}"])
                 for side in ("rows", "columns")]
        return (tiles[0] * tiles[1] * (1 + inner[0] * inner[1]),
                tiles[0] * tiles[1] * 8 + min(tiles) * inner[0] * inner[1])
    else:
        tasks = 0
    return tasks, tasks


# ---- output ------------------------------------------------------------------------------------

def width_of(first):
    return {"distribution": 12, "variant": 15}.get(first, 8)


def heading(first):
    return (f"{first:>{width_of(first)}} {'ranks':>6} {'workers':>7}  {'policy':<9} "
            f"{'seconds':>10} {'in task':>8} "
            f"{'idle':>7} {'overhead':>8} {'tasks':>10} {'messages':>9} {'GB':>9}")


def line_of(record, first):
    return (f"{record[first]:>{width_of(first)}} {record['ranks']:>6} {record['workers']:>7}  "
            f"{record['policy']:<9} {record['seconds']:>10.4f} {record['in_task']:>8.1%} "
            f"{record['idle']:>7.1%} {record['overhead']:>8.2%} {record['tasks']:>10} "
            f"{record['messages']:>9} {record['bytes'] / 1e9:>9.2f}")


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


def check_writable(name, path):
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise CommandError(f"{name} {path}: cannot be written")


def write_all(path, text):
    """All or nothing: a reader never finds half a file."""
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/stdout, a pipe
        pathlib.Path(path).write_text(text, encoding="utf-8")
        return
    part = f"{path}.part"
    pathlib.Path(part).write_text(text, encoding="utf-8")
    os.replace(part, path)
