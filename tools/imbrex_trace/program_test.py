# SPDX-License-Identifier: BSD-3-Clause
"""program_test.py COMMAND...: a real program, traced, through all three commands.

Methodology: what must hold for every program: the slices of a row nest, every arrow starts and ends
inside of a slice and, within a rank, goes forward in time (two ranks' clocks may differ a little),
and the workers' times add up to the time of the run.
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

IMBREX = pathlib.Path(__file__).resolve().parent.parent / "imbrex"
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
        merged = cls.folder / "trace.json"
        cls.imbrex("merge", cls.trace, "-o", merged)
        cls.events = json.loads(merged.read_text())["traceEvents"]
        cls.ranks = [json.loads(path.read_text()) for path in sorted(cls.trace.glob("*.json"))]

    @staticmethod
    def imbrex(*arguments):
        return subprocess.run([sys.executable, "-B", str(IMBREX), *map(str, arguments)],
                              check=True, capture_output=True, text=True).stdout

    def slices(self):
        """(rank, row) -> (start, end) of its slices in ns, the outer ones first."""
        rows = collections.defaultdict(list)
        for event in self.events:
            if event["ph"] == "X":
                start = round(event["ts"] * 1000)
                rows[event["pid"], event["tid"]].append(
                    (start, start + round(event["dur"] * 1000)))
        for spans in rows.values():
            spans.sort(key=lambda span: (span[0], -span[1]))
        return rows

    def test_slices_nest(self):
        for row, spans in self.slices().items():
            open_until = []
            for start, end in spans:
                while open_until and open_until[-1] <= start:
                    open_until.pop()
                if open_until:
                    self.assertLessEqual(end, open_until[-1], f"{row}: {start} ns")
                open_until.append(end)

    def test_arrows_hold_on_to_slices_and_go_forward(self):
        rows = {row: set(spans) for row, spans in self.slices().items()}
        arrows = collections.defaultdict(dict)
        for event in self.events:
            if event["ph"] in "sf":
                arrows[event["id"]][event["ph"]] = event
        for arrow in list(arrows.values())[:300]:  # each is looked for in all slices
            self.assertEqual(set(arrow), {"s", "f"})
            if arrow["s"]["pid"] == arrow["f"]["pid"]:
                self.assertLessEqual(arrow["s"]["ts"], arrow["f"]["ts"])
            for event in arrow.values():
                time = round(event["ts"] * 1000)
                self.assertTrue(any(start <= time <= end for start, end
                                    in rows[event["pid"], event["tid"]]), event)

    def test_every_message_is_received(self):
        names = [event["name"].split()[0] for event in self.events
                 if event.get("cat") == "message" and event["ph"] in "Xi"]
        arrows = sum(1 for event in self.events if event["name"] == "message"
                     and event["ph"] == "s")
        self.assertEqual(names.count("send"), names.count("receive"))
        self.assertEqual(arrows, names.count("send"))
        if len(self.ranks) > 1:
            self.assertGreater(arrows, 0)

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
