# SPDX-License-Identifier: BSD-3-Clause
"""imbrex_simulate_trace_test.py IMBREX TILED STENCIL1D LIFE_CASES FUTURES MPIRUN...: programs are
traced and their runs simulated. MPIRUN is a command that the number of ranks follows.

Methodology: each task of a run is simulated once and each byte that was received arrives; kernels
that sleep for a constant time make the run and its generator comparable.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from imbrex_trace import history, reader

IMBREX = TILED = STENCIL1D = LIFE_CASES = FUTURES = ""
MPIRUN = []
KERNEL_US = {"potrf": 1000, "trsm": 3000, "syrk": 3000, "gemm": 6000}
KERNELS = ",".join(f"{name}={time}us" for name, time in KERNEL_US.items())


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def record(self, name, ranks, *command, progress="auto"):
        trace = self.folder / name
        if not trace.exists():
            launch = [*MPIRUN, str(ranks)] if ranks else []
            subprocess.run([*launch, *map(str, command)], check=True, stdout=subprocess.DEVNULL,
                           env=os.environ | {"IMBREX_TRACE": str(trace), "IMBREX_WORKERS": "1",
                                             "IMBREX_PROGRESS": progress})
        return trace

    def cholesky(self):
        times = ",".join(map(str, KERNEL_US.values()))
        return self.record("cholesky", 4, TILED, "cholesky", "--random", 2048, "--tile", 256,
                           "--variant", "tasks", "--kernels", "timed", "--kernel-us", times,
                           "--repeat", 1, "--priorities", "none")

    def call(self, *arguments):
        return subprocess.run([IMBREX, "simulate", *map(str, arguments)], capture_output=True,
                              text=True, check=False, timeout=100)

    def simulate(self, *arguments):
        results = self.folder / "results.json"
        done = self.call("--json", results, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(results.read_text(encoding="utf-8"))

    def check(self, trace, *arguments):
        """All tasks run, and all messages between tasks arrive, under several policies."""
        ranks = [history.replay(rank) for rank in reader.read_run(trace)]
        tasks = sum(1 for rank in ranks for task in rank.tasks.values()
                    if task.created >= 0)
        received = [one for rank in ranks for one in rank.messages if not one.sent]
        collectives = any(rank.collectives for rank in ranks)
        records = self.simulate("--trace", trace, "--policy", "default,fifo,sa,fa,ga", *arguments)
        self.assertEqual(len(records), 5)
        for record in records:
            self.assertEqual(record["ranks"], len(ranks))
            self.assertEqual(record["tasks"], tasks, record)
            compare = self.assertGreaterEqual if collectives else self.assertEqual
            compare(record["messages"], len(received))
            compare(record["bytes"], sum(one.bytes for one in received))
            self.assertGreater(record["seconds"], 0)
        return records

    def test_cholesky_on_four_ranks(self):
        self.check(self.cholesky())
        self.check(self.cholesky(), "--workers", 3, "--network", "netlab-100mbit")

    def test_a_stencil_with_tasks(self):
        self.check(self.record("stencil", 2, STENCIL1D, "--size", 30000, "--ghost", 300, "--steps",
                               20, "--chunks", 9, "--repeat", 1, "--variants", "tasks"))

    def test_each_kind_of_message_and_collectives(self):
        self.check(self.record("kinds", 2, LIFE_CASES, "all_kinds"))

    def test_tasks_that_destroy_what_held_tasks_leave_behind(self):
        """The library makes these tasks: no task is their parent, and none of them is main."""
        trace = self.record("held", 1, LIFE_CASES, "held_tasks")
        seen, = [history.replay(rank) for rank in reader.read_run(trace)]
        found = [(task.parent, task.root) for task in seen.tasks.values()
                 if seen.rank.names[task.name].name == "destructors of results"]
        self.assertIn((0, False), found)
        self.assertNotIn((0, True), found)
        self.check(trace)

    def test_messages_that_a_thread_of_the_library_receives(self):
        """The thread ends before the trace is written."""
        trace = self.record("thread", 1, LIFE_CASES, "held_tasks", progress="dedicated-thread")
        seen, = [history.replay(rank) for rank in reader.read_run(trace)]
        received = [one for one in seen.messages if not one.sent]
        self.assertEqual(len(received), 3)
        self.assertIn(reader.NO_WORKER, {one.worker for one in received})
        self.check(trace)

    def test_futures(self):
        self.check(self.record("futures", 0, FUTURES), "--workers", 2)

    def test_generator_and_trace_of_one_run_agree(self):
        """What is no kernel gets next to no time: tasks of the trace fill the matrix, and ranks
        that share processors are slow to send."""
        names = collections.Counter(
            rank.rank.names[task.name].name for rank in
            map(history.replay, reader.read_run(self.cholesky())) for task in rank.tasks.values())
        self.assertEqual((names["gemm"], names["potrf"]), (56, 8))
        machine = ("--network", "edr", "--policy", "fifo,default,fa")
        generated = self.simulate("cholesky", "--n", 2048, "--tile", 256, "--ranks", 4,
                                  "--kernels", KERNELS, *machine)
        from_trace = self.simulate("--trace", self.cholesky(), "--kernels",
                                   f"{KERNELS},main=1ns,fill=1ns,free=1ns,send=1ns,receive=1ns",
                                   *machine)
        for one, other in zip(generated, from_trace):
            self.assertAlmostEqual(other["seconds"] / one["seconds"], 1, delta=0.08,
                                   msg=f"{one} {other}")

    def test_speed_and_workers_count(self):
        trace = self.cholesky()
        slow, = self.simulate("--trace", trace, "--speed", 0.5)
        fast, = self.simulate("--trace", trace, "--speed", 5)
        self.assertGreater(slow["seconds"], 5 * fast["seconds"])
        records = self.simulate("--trace", trace, "--sweep", "workers=1,4")
        self.assertGreater(records[0]["seconds"], records[1]["seconds"])
        self.assertEqual(self.call("--trace", trace).stdout, self.call("--trace", trace).stdout)

    def test_bad_traces_and_options_are_refused(self):
        trace = self.folder / "bad"
        trace.mkdir()
        for path in self.cholesky().iterdir():
            (trace / path.name).write_bytes(path.read_bytes())
        head, events = trace / "rank-2.json", trace / "rank-2.events"
        text, data = head.read_text(encoding="utf-8"), events.read_bytes()

        def refused(words, *arguments, status=1):
            results = self.folder / "none.json"
            done = self.call("--json", results, "--trace", trace, *arguments)
            self.assertEqual((done.returncode, results.exists()), (status, False), done.stderr)
            self.assertIn(words, done.stderr)

        refused("there is no kernel foo", "--kernels", "foo=3ms")
        refused("the trace in", "--ranks", 5)
        refused("argument --speed: 0 is out of range", "--speed", 0, status=2)
        refused("--n is not an option", "--n", 5)
        events.write_bytes(data[:-70])
        refused("rank-2.events: truncated")
        head.write_text(text.replace('"events": ', '"events": 1'), encoding="utf-8")
        refused("rank-2.events: truncated")
        for old, new, words in (('"version": 3', '"version": 2', "trace version 2"),
                                ('"cut": ""', '"cut": "signal 9"', "incomplete"),
                                ('"ranks": 4', '"ranks": 5', "4 and 5 ranks")):
            head.write_text(text.replace(old, new), encoding="utf-8")
            refused(words)
        head.unlink()
        refused("no file of rank 2")
        done = self.call("--trace", self.folder / "nowhere")
        self.assertIn("no such directory", done.stderr)
        done = self.call("cholesky", "--trace", trace)
        self.assertIn("not both", done.stderr)


if __name__ == "__main__":
    IMBREX, TILED, STENCIL1D, LIFE_CASES, FUTURES, *MPIRUN = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
