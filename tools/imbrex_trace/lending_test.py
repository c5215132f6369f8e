# SPDX-License-Identifier: BSD-3-Clause
"""Runs of which it can be told by hand what IMBREX_LEND=1 would save, and traces of runs with it,
go through `imbrex report` and `imbrex timeline`."""
import unittest

import report_test
from report_test import INOUT, run


class Lending(report_test.ReportTest):
    def test_lending_serves_the_rank_with_more_tasks(self):
        for number, load in ((0, 4), (1, 16)):
            rank = self.writer(rank=number, ranks=2, end=16)
            self.chain(rank, 0, 0, load, rank.name("work"), load)
            if load < 16:
                rank.idle(load, 16, 0)
            rank.write()
        # Rank 1 has ready tasks until its last one begins: 11 ms, at twice the speed.
        self.assertIn("Imbalance between ranks of the node node1: lending would save 34 % "
                      "(`IMBREX_LEND=1`).", self.verdict()[0])

    def test_lending_serves_no_chain_and_no_other_node(self):
        for host, accesses in (("node1", ((8, INOUT),)), ("node2", ())):
            for number, load in ((0, 4), (1, 16)):
                rank = self.writer(rank=number, ranks=2, end=16)
                rank.head["host"] = host if number else "node1"
                self.chain(rank, 0, 0, load, rank.name("work"), load, accesses=accesses)
                if load < 16:
                    rank.idle(load, 16, 0)
                rank.write()
            self.assertNotIn("lending", self.verdict()[0])

    def test_a_spare_worker_is_marked_and_its_pauses_are_no_loss(self):
        for number in (0, 1):
            rank = self.writer(rank=number, ranks=2, end=16, workers=2)
            rank.head |= {"processors": [number], "spare_workers": [1]}
            work = rank.name("work")
            self.chain(rank, 0, 0, 16, work, 16)
            rank.idle(0, 16, 1)
            rank.write()
        said = self.verdict()[0]
        self.assertNotIn("idle", said)
        self.assertNotIn("shared", said)
        picture = self.directory / "timeline.svg"
        self.assertEqual(run("timeline", self.directory, "-o", picture).returncode, 0)
        self.assertIn("rank 1, worker 1 (borrowed)", picture.read_text())


if __name__ == "__main__":
    unittest.main()
