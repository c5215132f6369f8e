# SPDX-License-Identifier: BSD-3-Clause
"""Writes traces for tests, record by record. Used by the tests only; it shares the record's layout
with no one, so that a wrong reader cannot be hidden by a wrong writer."""
import json
import pathlib
import struct

START = 1_700_000_000_000_000_000
MILLI = 1_000_000


ROOT = 1 << 40  # the id of main


class RankWriter:
    """Times are given in ms after the start. Unless told, main is suspended from the start on."""

    def __init__(self, directory, rank=0, ranks=1, workers=1, end=10, main_runs=False):
        self.directory = pathlib.Path(directory)
        self.head = {"version": 1, "rank": rank, "ranks": ranks, "workers": workers,
                     "policy": "stealing", "host": "node1", "start_ns": START,
                     "end_ns": START + end * MILLI, "names": [], "events": 0}
        self.data = bytearray()
        if not main_runs:
            self.suspend(0, 0, ROOT, self.name("waits", ""))

    def name(self, name, where="a.cpp:1"):
        self.head["names"].append({"name": name, "where": where})
        return len(self.head["names"]) - 1

    def add(self, time, worker, kind, task=0, a=0, b=0, c=0):
        self.data += struct.pack("<Q", START + round(time * MILLI)) + struct.pack("<Q", task)
        self.data += struct.pack("<II", worker, kind) + struct.pack("<QQQ", a, b, c)
        self.head["events"] += 1

    def begin(self, time, worker, task, name, priority=0, parent=ROOT):
        self.add(time, worker, 1, task, name, priority % 2**64, parent)

    def end(self, time, worker, task):
        self.add(time, worker, 2, task)

    def suspend(self, time, worker, task, name):
        self.add(time, worker, 3, task, name)

    def resume(self, time, worker, task):
        self.add(time, worker, 4, task)

    def idle(self, begin, end, worker):
        self.add(begin, worker, 5)
        self.add(end, worker, 6)

    def message(self, time, worker, kind, peer, tag, size=8, communicator=0):
        self.add(time, worker, kind, 0, size, peer % 2**32 + (tag % 2**32 << 32), communicator)

    def write(self):
        rank = self.head["rank"]
        (self.directory / f"rank-{rank}.json").write_text(json.dumps(self.head))
        (self.directory / f"rank-{rank}.events").write_bytes(self.data)
        return self.directory
