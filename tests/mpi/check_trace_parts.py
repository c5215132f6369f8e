# SPDX-License-Identifier: BSD-3-Clause
"""check_trace_parts.py CASE DIRECTORY IMBREX COMMAND...: runs the command (parts_cases CASE on
three ranks) with IMBREX_TRACE=DIRECTORY.

parts: each part of a collective is a message in the trace, the report shows no wait that it cannot
explain, and a simulation takes the time that the network needs for the parts.
unrecorded: report and simulation say in their first line what they do not know.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
from imbrex_trace import graph, history, reader  # noqa: E402

RANKS = 3
BLOCK = 8 * 65536  # bytes
NS_PER_BYTE = 80  # 100 Mbit/s

case, directory, imbrex = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
shutil.rmtree(directory, ignore_errors=True)
printed = subprocess.run(sys.argv[4:], check=True, stdout=subprocess.PIPE, text=True,
                         env=dict(os.environ, IMBREX_TRACE=str(directory))).stdout
if "wrong" in printed:
    sys.exit(printed)


def call(*arguments):
    done = subprocess.run([imbrex, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          check=True)
    return done.stdout.splitlines()


report = call("report", "--write", "none", "--whole", directory)
results = directory / "results.json"
simulation = call("simulate", "--trace", directory, "--network", "netlab-100mbit", "--json",
                  results)
if case == "unrecorded":
    expected = rf"not recorded, .*: {RANKS * 2} one-sided operations, \d+ phases of phasers .*"
    for lines in report, simulation:
        if not re.fullmatch(expected, lines[0]):
            sys.exit(f"the first line is {lines[0]}")
    sys.exit()

histories = [history.replay(rank) for rank in reader.read_run(directory)]
flights = collections.Counter((flight.source, flight.target, flight.bytes)
                              for flight in graph.flights(histories))
wanted = collections.Counter()
for source in range(RANKS):
    for target in range(RANKS):
        if source != target:
            wanted[source, target, BLOCK] += 2  # the exchanges
for source in range(RANKS - 1):
    wanted[source, source + 1, BLOCK // 2] += 2  # the broadcast
if flights != wanted:
    sys.exit(f"beyond: {flights - wanted}; missing: {wanted - flights}")
if f"{sum(wanted.values())} messages" not in report[1]:
    sys.exit(f"the report counts other messages: {report[1]}")
reductions = [one for one in histories[0].collectives if one.end >= 0]
if len(reductions) != 1:
    sys.exit(f"collectives: {histories[0].collectives}")
# Two exchanges, one after the other, of two blocks each way; then the last rank gets its data
# through another one, half by half.
least = (2 * 2 * BLOCK + 3 * BLOCK // 2) * NS_PER_BYTE * 1e-9
seconds = json.loads(results.read_text())[0]["seconds"]
if not 0.95 * least < seconds < 1.5 * least:
    sys.exit(f"the simulated run takes {seconds} s, and not about {least} s: {simulation}")
