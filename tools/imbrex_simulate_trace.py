# SPDX-License-Identifier: BSD-3-Clause
"""A recorded run for `imbrex simulate --trace`: reads and checks the heads of its files, and writes
what imbrex-simulate needs of them. That program reads the records.
"""
import os
import re
import tempfile

from imbrex_errors import CommandError
from imbrex_trace import reader

RECORDED = "trace"  # the name of the program
RECORD_BYTES = 250  # of memory, for each record of a simulated trace: estimated, not measured
LARGE = 10_000_000  # records
ABOUT = "DIRECTORY holds the trace of a run."


def add_options(parser, amount):
    parser.add_argument("--trace", metavar="DIRECTORY", help="simulate the run whose trace "
                        "IMBREX_TRACE has written there, on its number of ranks")
    parser.add_argument("--speed", type=amount("speed"), metavar="X", help="trace: how many times "
                        "as fast kernels are that --kernels does not name (default 1)")


class Run:
    """A whole trace, by its heads. Its file for imbrex-simulate exists as long as the object."""

    def __init__(self, directory):
        self.folder = None
        self.heads = [read_whole(path, directory) for path in reader.head_files(directory).values()]
        sizes = sorted({head["ranks"] for head in self.heads})
        if len(sizes) > 1:
            raise CommandError(f"{directory}: holds files of runs with {sizes[0]} and {sizes[-1]} "
                               "ranks: remove the old ones")
        self.ranks = sizes[0]
        present = {head["rank"] for head in self.heads}
        missing = [str(rank) for rank in range(self.ranks) if rank not in present]
        if missing:
            raise CommandError(f"{directory}: of {self.ranks} ranks, no file of rank "
                               f"{', '.join(missing)}: a simulation needs all ranks")
        if len(self.heads) > self.ranks:
            raise CommandError(f"{directory}: rank {max(present)} in a run of {self.ranks} ranks")
        self.heads.sort(key=lambda head: head["rank"])
        self.workers = max(head["workers"] for head in self.heads)
        self.records = sum(head["events"] for head in self.heads)
        self.names = sorted({entry["name"] for head in self.heads for entry in head["names"]})

    def settings_of(self, times, speed):
        """Settings of imbrex-simulate. `times` are nanoseconds by the name of a task."""
        if self.folder is not None:  # for another policy: the user has been told of gaps
            return {"heads": os.path.join(self.folder.name, "heads"), "speed": speed, "tells": 0}
        self.folder = tempfile.TemporaryDirectory(prefix="imbrex-simulate-")
        path = os.path.join(self.folder.name, "heads")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            for head in self.heads:
                file.write(f"{head['rank']} {head['workers']} {head['events']} "
                           f"{len(head['names'])}\n{head['records']}\n")
                for entry in head["names"]:
                    name = re.sub(r"[\x00-\x1f]", " ", entry["name"])
                    file.write(f"{round(times.get(entry['name'], -1))} {name}\n")
        return {"heads": path, "speed": speed, "tells": 1}

    def unrecorded(self):
        """A line about what the trace does not contain; empty if there is nothing."""
        what = reader.describe_unrecorded(reader.unrecorded_of(head) for head in self.heads)
        return f"not recorded, and so not simulated: {what}" if what else ""

    def size_in_words(self):
        """What a large trace needs; empty for others."""
        if self.records < LARGE:
            return ""
        return (f"about {self.records / 1e6:.1f} million records, at most "
                f"{self.records * RECORD_BYTES / 2 ** 30:.1f} GiB of memory")


def read_whole(path, directory):
    head = reader.read_head(path)
    if path.name != f"rank-{head['rank']}.json":
        raise CommandError(f"{path}: the file says rank {head['rank']}, unlike its name")
    if head.get("cut") or head.get("lost"):
        why = (f"the rank ended by {head['cut']}" if head.get("cut") else
               f"there was no room for {head['lost']} records")
        raise CommandError(f"{path}: the trace is incomplete: {why}. A simulation needs the whole "
                           "run")
    records = path.with_suffix(".events")
    if not records.is_file():
        raise CommandError(f"{records}: missing, though its .json is there")
    return head | {"records": os.path.abspath(records), "directory": directory}
