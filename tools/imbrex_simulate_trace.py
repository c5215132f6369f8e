# SPDX-License-Identifier: BSD-3-Clause
"""A recorded run for `imbrex simulate --trace`: the heads of its files say what the simulation
needs, and imbrex_trace/steps.py rebuilds the run for imbrex-simulate.
"""
import functools
import gc
import os
import sys
import tempfile

from imbrex_errors import CommandError
from imbrex_trace import reader, steps

RECORDED = "trace"  # the name of the program
# Memory for each record: of the rank that is rebuilt, as measured; of the simulation, estimated.
REBUILT_BYTES, SIMULATED_BYTES = 450, 250
LARGE = 10_000_000  # records
ABOUT = "DIRECTORY holds the trace of a run."


def add_options(parser, amount):
    parser.add_argument("--trace", metavar="DIRECTORY", help="simulate the run whose trace "
                        "IMBREX_TRACE has written there, on its number of ranks")
    parser.add_argument("--speed", type=amount("speed"), metavar="X", help="trace: how many times "
                        "as fast kernels are that --kernels does not name (default 1)")


class Run:
    """A whole trace. The file for imbrex-simulate exists as long as the object."""

    def __init__(self, directory):
        self.heads = reader.read_heads(directory)
        gaps = reader.describe_gaps(self.heads)
        if gaps:
            raise CommandError(f"{directory}: {gaps}. A simulation needs the whole run")
        self.folder = tempfile.TemporaryDirectory(prefix="imbrex-simulate-")
        self.steps = os.path.join(self.folder.name, "steps")
        self.is_rebuilt = False
        self.ranks = len(self.heads)
        self.workers = max(head.workers - len(head.spare_workers) for head in self.heads)
        counts = [head.count for head in self.heads]
        self.records = sum(counts)
        self.bytes = max(max(counts) * REBUILT_BYTES, self.records * SIMULATED_BYTES)
        self.names = sorted({name.name for head in self.heads for name in head.names})

    def rebuild(self):
        """Writes the file and tells the user of gaps, at the first call."""
        if self.is_rebuilt:
            return
        gc.disable()  # millions of objects, and no garbage: a search takes a third of the time
        left_out = steps.write(self.heads, self.steps)
        gc.enable()
        self.is_rebuilt = True
        for what, count in sorted(left_out.items()):
            print(f"imbrex simulate: not simulated: {what} ({count} times)", file=sys.stderr)

    def settings_of(self, times, speed):
        """Settings of imbrex-simulate, once rebuild() has returned. `times` are nanoseconds by the
        name of a task."""
        settings = {"steps": self.steps, "speed": speed, "kernels": len(times)}
        for number, (name, time) in enumerate(times.items()):
            settings |= {f"name.{number}": name, f"kernel.{number}": round(time)}
        return settings

    def unrecorded(self):
        """A line about what the trace does not contain; empty if there is nothing."""
        what = reader.describe_unrecorded(head.unrecorded for head in self.heads)
        return f"not recorded, and so not simulated: {what}" if what else ""

    def size_in_words(self):
        """What a large trace needs; empty for others."""
        if self.records < LARGE:
            return ""
        return (f"about {self.records / 1e6:.1f} million records, at most "
                f"{self.bytes / 2 ** 30:.1f} GiB of memory")


read_run = functools.lru_cache(Run)  # several points and values of a sweep use one trace
