# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex calibrate`: measures the MPI and the network at hand, and writes the file that
`imbrex simulate --network` reads.

imbrex_calibrate.c measures; it is compiled with the MPI's compiler, and started as the user says.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile

import imbrex_simulate
from imbrex_errors import CommandError

SOURCE = pathlib.Path(__file__).resolve().parent / "imbrex_calibrate.c"
NEEDED = ("half_round_trip", "stream_small", "in_send", "eager_limit", "copied", "in_send_copied",
          "large", "stream_large", "sender_answers")


def add_to(commands):
    parser = commands.add_parser(
        "calibrate", help="measure the MPI and the network at hand, for `imbrex simulate`",
        usage="imbrex calibrate [options] -- LAUNCHER...",
        description="Measures latency, overhead, gap, rate and eager limit between rank 0 and the "
        "last rank of the command that follows, as `mpirun -n 2`, and writes a file that `imbrex "
        "simulate --network FILE` reads. With three ranks, of which two are on the first node, "
        "also between ranks of a node. Takes some seconds.")
    parser.add_argument("--output", "-o", metavar="FILE", default="calibrated.network",
                        help="the file (default calibrated.network)")
    parser.add_argument("--mpicc", metavar="COMMAND", help="the MPI's C compiler (default: mpicc "
                        "beside the launcher, else of the PATH)")
    parser.add_argument("--timeout", metavar="S", type=float, default=120,
                        help="end the measurement after S seconds (default 120)")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="LAUNCHER...",
                        help="starts an MPI program, as mpirun -n 2; its words are appended")
    parser.set_defaults(run=run, parser=parser)


def run(options):
    launcher = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not launcher:
        options.parser.error("name a launcher, as: imbrex calibrate -- mpirun -n 2")
    if shutil.which(launcher[0]) is None:
        raise CommandError(f"there is no command {launcher[0]}")
    imbrex_simulate.check_writable("--output", options.output)
    # In the present folder, which other nodes may see, and /tmp may not be.
    with tempfile.TemporaryDirectory(prefix=".imbrex-calibrate-", dir=".") as folder:
        program = os.path.join(os.path.abspath(folder), "calibrate")
        compile_with(options.mpicc or compiler_of(launcher[0]), program)
        measured = measure([*launcher, program], options.timeout)
    text = network_of(measured, " ".join(launcher))
    imbrex_simulate.write_all(options.output, text)
    print(text, end="")
    print(f"imbrex calibrate: wrote {options.output}; use it as: imbrex simulate ... --network "
          f"{options.output}")


def compiler_of(launcher):
    """The compiler beside the launcher; behind links, it may have another folder. Where several
    MPIs have one folder, as in Debian, mpirun.mpich has mpicc.mpich."""
    place = pathlib.Path(shutil.which(launcher))
    behind = pathlib.Path(os.path.realpath(place))
    for found in (place.parent / f"mpicc{place.suffix}", place.parent / "mpicc",
                  behind.parent / "mpicc"):
        if found.is_file():
            return str(found)
    if shutil.which("mpicc"):
        return "mpicc"
    raise CommandError("there is no mpicc: say where it is by --mpicc")


def compile_with(mpicc, program):
    if shutil.which(mpicc) is None:
        raise CommandError(f"there is no command {mpicc}")
    done = subprocess.run([mpicc, "-O2", "-o", program, SOURCE], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise CommandError(f"{mpicc} failed:\n{done.stderr.strip()}")


def measure(command, timeout_s):
    """The values that the program prints, by name."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise CommandError(f"{' '.join(command)} took more than {timeout_s:g} s") from None
    if done.returncode != 0:
        raise CommandError(f"{' '.join(command)} failed with status {done.returncode}:\n"
                           f"{(done.stderr or done.stdout).strip()}")
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise CommandError(f"{' '.join(command)} has not measured {', '.join(missing)}: is it "
                           "started with two ranks or more, which print to the launcher?")
    return found


def parameters_of(measured, prefix):
    """LogGPS of one pair of ranks. A one-way trip of a byte is overhead, latency, overhead."""
    value = {name: float(measured[prefix + name]) for name in NEEDED}
    one_way = value["half_round_trip"]
    overhead = min(value["in_send"], one_way / 4)
    us_per_byte = value["stream_large"] / value["large"]
    copied_us = max(0.0, value["in_send_copied"] - value["in_send"])
    return {"latency_us": one_way - 2 * overhead,
            "overhead_us": overhead,
            "gap_us": max(0.0, value["stream_small"] - overhead),
            "gbit_per_s": 8e-3 / us_per_byte,
            # A copy that is too fast to be measured counts as ten times the network's rate.
            "copy_gbit_per_s": min(8e-3 * value["copied"] / max(copied_us, 1e-3),
                                   80e-3 / us_per_byte),
            "eager_bytes": int(value["eager_limit"]),
            "sender_answers": int(value["sender_answers"])}


def network_of(measured, launcher):
    pair = parameters_of(measured, "")
    has_node = "node_" + NEEDED[0] in measured
    node = parameters_of(measured, "node_") if has_node else pair
    pair["node_latency_us"] = node["latency_us"]
    pair["node_gbit_per_s"] = node["gbit_per_s"]
    lines = [f"# Measured by `imbrex calibrate` with {launcher}: "
             f"{measured.get('library', 'an MPI')}",
             "# Between ranks of a node: " +
             ("measured" if has_node else "as between the two ranks that were measured")]
    lines += [f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
              for name, value in pair.items()]
    return "\n".join(lines) + "\n"
