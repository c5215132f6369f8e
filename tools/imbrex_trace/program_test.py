# SPDX-License-Identifier: BSD-3-Clause
"""program_test.py COMMAND...: a real program, traced, and shown by the commands.

Methodology: what must hold for every program: the slices of a row nest, also as other tools get
them; the parts of a task follow each other; every message is received, and within a rank later
than it was sent (two ranks' clocks may differ a little); and the workers' times add up to the time
of the run.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))
from imbrex_trace import graph, history, otf2_files, reader  # noqa: E402

command = []


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.trace = cls.folder / "trace"
        environment = os.environ | {"IMBREX_TRACE": str(cls.trace), "IMBREX_WORKERS": "2"}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        cls.histories = [history.replay(rank) for rank in reader.read_run(cls.trace)]
        cls.ranks = [json.loads(path.read_text()) for path in sorted(cls.trace.glob("*.json"))]

    @staticmethod
    def imbrex(*arguments):
        return subprocess.run([sys.executable, "-B", str(TOOLS / "imbrex"), *map(str, arguments)],
                              check=True, capture_output=True, text=True).stdout

    def test_slices_nest(self):
        for seen in self.histories:
            rows = collections.defaultdict(list)
            for one in seen.slices:
                rows[one.worker].append((one.start, one.end))
            for worker, spans in rows.items():
                open_until = []
                for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
                    while open_until and open_until[-1] <= start:
                        open_until.pop()
                    if open_until:
                        self.assertLessEqual(end, open_until[-1], f"worker {worker}: {start} ns")
                    open_until.append(end)

    def test_other_tools_get_slices_that_nest_and_all_messages(self):
        for seen in self.histories:
            messages = 0
            for worker in seen.pieces:
                stack, before = [], 0
                for time, what, which in otf2_files.events(seen, worker):
                    self.assertLessEqual(before, time)
                    before = time
                    if what == "enter":
                        stack.append(which)
                    elif what == "leave":
                        self.assertEqual(stack.pop(), which)
                    else:
                        messages += 1
                self.assertEqual(stack, [])
            self.assertEqual(messages, len(seen.messages))

    def test_parts_of_a_task_follow_each_other(self):
        for seen in self.histories:
            parts = collections.defaultdict(list)
            for one in seen.slices:
                parts[one.task].append(one)
            for slices in parts.values():
                slices.sort(key=lambda one: one.part)
                self.assertEqual([one.part for one in slices], list(range(1, len(slices) + 1)))
                for before, after in zip(slices, slices[1:]):
                    self.assertLessEqual(before.end, after.start)

    def test_every_message_is_received(self):
        messages = [one for seen in self.histories for one in seen.messages]
        sent = sum(one.sent for one in messages)
        flights = graph.flights(self.histories)
        self.assertEqual((sent, len(flights)), (len(messages) - sent, sent))
        if len(self.ranks) > 1:
            self.assertGreater(sent, 0)
        for flight in flights:
            if flight.source == flight.target:
                self.assertLessEqual(flight.sent, flight.arrival.time)

    def test_times_add_up(self):
        lines = self.imbrex("summary", self.trace).splitlines()
        workers = sum(rank["workers"] for rank in self.ranks)
        rows = [line.split() for line in lines[1:workers + 1]]
        for cells in rows:
            rank = self.ranks[int(cells[0])]
            run = (rank["end_ns"] - rank["start_ns"]) / 1e9
            self.assertAlmostEqual(float(cells[2]) + float(cells[4]) + float(cells[6]), run,
                                   delta=3e-6)
        self.assertGreater(sum(int(cells[8]) for cells in rows), 0)

    def test_the_picture_has_a_row_for_each_worker(self):
        picture = self.folder / "trace.svg"
        self.imbrex("timeline", self.trace, "-o", picture)
        texts = [element.text for element in xml.etree.ElementTree.parse(picture).iter()
                 if element.tag.endswith("text")]
        for rank in self.ranks:
            for worker in range(rank["workers"]):
                self.assertIn(f"rank {rank['rank']}, worker {worker}", texts)


if __name__ == "__main__":
    command = sys.argv[1:]
    del sys.argv[1:]
    unittest.main()
