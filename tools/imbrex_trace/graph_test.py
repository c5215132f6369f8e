# SPDX-License-Identifier: BSD-3-Clause
"""graph_test.py PROGRAM: the graph of a real program (examples/dependencies.cpp), from its trace.

Methodology: under every policy the same edges must come out, whatever had ended when a task was
made; and no task may begin before those that it follows have ended.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from imbrex_trace import graph, history, reader  # noqa: E402

program = []
# 50 steps of 6 blocks, each of which needs its neighbours' last step.
EDGES = ([("add", ["mix"])] * 6 + [("after both", ["left", "right"])] +
         [("mix", ["mix"] * 2)] * (49 * 2) + [("mix", ["mix"] * 3)] * (49 * 4))
POLICIES = ("default", "fifo", "priority", "ma1", "sa", "seeded:7")


def traced(policy):
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"IMBREX_TRACE": folder, "IMBREX_WORKERS": "2",
                                    "IMBREX_POLICY": policy}
        subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL,
                       timeout=60)
        (rank,) = reader.read_run(folder)
    return history.replay(rank)


class Graph(unittest.TestCase):
    def names(self, seen, tasks):
        return sorted(seen.rank.names[seen.tasks[task].name].name for task in tasks)

    def test_the_edges_are_the_same_under_every_policy(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                seen = traced(policy)
                edges = sorted((self.names(seen, [task])[0], self.names(seen, earlier))
                               for task, earlier in graph.predecessors(seen).items())
                self.assertEqual(edges, EDGES)

    def test_no_task_begins_before_those_that_it_follows_have_ended(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                seen = traced(policy)
                begin, end = {}, {}
                for one in seen.slices:
                    begin[one.task] = min(begin.get(one.task, one.start), one.start)
                    end[one.task] = max(end.get(one.task, one.end), one.end)
                for task, earlier in graph.predecessors(seen).items():
                    self.assertGreaterEqual(begin[task], seen.tasks[task].created)
                    for other in earlier:
                        self.assertLessEqual(end[other], begin[task])


if __name__ == "__main__":
    program = sys.argv[1:2]
    del sys.argv[1:2]
    unittest.main()
