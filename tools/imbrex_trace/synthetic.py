# SPDX-License-Identifier: BSD-3-Clause
"""Writes traces for tests, record by record, and large ones. Used by the tests only; it shares the
record's layout with no one, so that a wrong reader cannot be hidden by a wrong writer."""
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
        self.head = {"version": 3, "rank": rank, "ranks": ranks, "workers": workers,
                     "policy": "stealing", "host": "node1", "start_ns": START,
                     "end_ns": START + end * MILLI, "names": [], "events": 0,
                     "command": ["bin/solve", "--size", "9"],
                     "processors": list(range(workers))}
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

    def suspend(self, time, worker, task, name, waits_task=0):
        self.add(time, worker, 3, task, name, waits_task, 1 if waits_task else 0)

    def create(self, time, worker, task, name, priority=0, parent=ROOT, accesses=()):
        """`accesses` are pairs of an address and a kind, 0 to 5 as in AccessKind."""
        self.add(time, worker, 9, task, name, priority % 2**64, parent)
        for place, kind in accesses:
            self.add(time, worker, 10, task, place, kind)

    def collective(self, begin, end, worker, task, name, size=8, communicator=0):
        self.add(begin, worker, 14, task, name, size, communicator)
        self.add(end, worker, 15, task, name, size, communicator)

    def resume(self, time, worker, task):
        self.add(time, worker, 4, task)

    def idle(self, begin, end, worker):
        self.add(begin, worker, 5)
        self.add(end, worker, 6)

    def message(self, time, worker, kind, peer, tag, size=8, communicator=0, task=0):
        self.add(time, worker, kind, task, size, peer % 2**32 + (tag % 2**32 << 32), communicator)

    def datum(self, number, name):
        self.add(0, 0, 17, 0, self.name(name, ""), 0, number)

    def copy(self, time, worker, kind, peer, root, ticket, datum, size=8):
        """`kind`: 18 sent to `peer`, 19 arrived."""
        self.add(time, worker, kind, 0, size, peer + (ticket << 32), datum + (root << 40))

    def write(self):
        rank = self.head["rank"]
        (self.directory / f"rank-{rank}.json").write_text(json.dumps(self.head))
        (self.directory / f"rank-{rank}.events").write_bytes(self.data)
        return self.directory


def write_large(directory, events, ranks=8, workers=2):
    """A run of about so many events: on each worker tasks of 20 us, of which one in ten sends to
    the next rank, and one in a hundred waits. Returns the number of tasks."""
    kinds = ("panel", "update", "update", "update", "solve", "update", "update", "sum")
    tasks = max(10, events // (ranks * workers * 34) * 10)  # per worker: 34 events for ten
    for number in range(ranks):
        rank = RankWriter(directory, number, ranks, workers, end=round(tasks * 0.025 + 2))
        names = {kind: rank.name(kind, f"{kind}.cpp:1") for kind in kinds}
        receive = rank.name("MPI_Recv", "")
        for worker in range(workers):
            for place in range(tasks):
                write_task(rank, worker, place, worker * tasks + place + 1,
                           names[kinds[place % len(kinds)]], receive)
        rank.write()
    return ranks * (workers * tasks + 1)


def write_task(rank, worker, place, task, name, receive):
    time, number, ranks = 1 + place * 0.025, rank.head["rank"], rank.head["ranks"]
    rank.create(time - 0.5, worker, task, name, priority=place % 7)
    rank.begin(time, worker, task, name, priority=place % 7)
    if place % 10 == 3:
        rank.message(time + 0.002, worker, 7, (number + 1) % ranks, place, 4096, worker, task)
    if place % 10 == 4:
        rank.message(time + 0.003, worker, 8, (number - 1) % ranks, place - 1, 4096, worker, task)
    if place % 100 == 50:
        rank.suspend(time + 0.004, worker, task, receive)
        rank.idle(time + 0.004, time + 0.01, worker)
        rank.resume(time + 0.01, worker, task)
    rank.end(time + 0.02, worker, task)
