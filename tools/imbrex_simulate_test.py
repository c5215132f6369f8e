# SPDX-License-Identifier: BSD-3-Clause
"""imbrex_simulate_test.py IMBREX: the command lines of `imbrex simulate` and `imbrex calibrate`,
their files, their output."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import imbrex_calibrate
import imbrex_simulate

NETWORK = """latency_us = 1  # a comment
overhead_us = 0
gap_us = 0
gbit_per_s = 8
copy_gbit_per_s = 80
eager_bytes = 0
sender_answers = 0
node_latency_us = 1
node_gbit_per_s = 80
"""


class Simulate(unittest.TestCase):
    imbrex = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "results.json"

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def call(self, *arguments):
        return subprocess.run([self.imbrex, "simulate", *map(str, arguments)], capture_output=True,
                              text=True, check=False, timeout=120)

    def records(self, *arguments):
        done = self.call("cholesky", "--json", self.json, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.json.read_text(encoding="utf-8"))

    def test_one_worker_takes_the_time_of_its_kernels(self):
        record, = self.records("--n", 4096, "--kernels", "gemm=6ms,trsm=2ms", "--creator-us", 0,
                               "--task-us", 0)
        # 8 potrf of 1 ms, 28 trsm of 2, 28 syrk of 3, 56 gemm of 6
        self.assertAlmostEqual(record["seconds"], 0.484, places=5)
        self.assertEqual(record["tasks"], 120)
        self.assertAlmostEqual(record["in_task"], 1, places=4)

    def test_a_rate_gives_the_times_of_all_kernels(self):
        slow, fast = (self.records("--n", 4096, "--kernels", f"gemm={rate}gflops")[0]
                      for rate in (10, 20))
        self.assertAlmostEqual(slow["seconds"] / fast["seconds"], 2, places=3)
        # n^3 / 3 operations, about
        self.assertAlmostEqual(slow["seconds"], 4096 ** 3 / 3 / 10e9, delta=0.2)

    def test_a_longer_gap_between_polls_delays_messages(self):
        short, long = (self.records("--n", 4096, "--ranks", 4, "--kernels", "gemm=6ms",
                                    "--network", "netlab-1gbit", "--poll-gap-us", gap)[0]
                       for gap in (100, 20000))
        self.assertLess(1.05 * short["seconds"], long["seconds"])

    def test_ranks_of_a_node_lend_processors(self):
        arguments = ("--n", 4096, "--ranks", 2, "--grid", "2x1", "--kernels", "gemm=6ms")
        alone, = self.records(*arguments, "--per-node", 2)
        lending, = self.records(*arguments, "--per-node", 2, "--lend")
        apart, = self.records(*arguments, "--lend")
        self.assertLess(lending["seconds"], alone["seconds"])
        self.assertGreater(lending["borrowed"], 0)
        self.assertEqual((alone["borrowed"], apart["borrowed"]), (0, 0))
        done = self.call("broadcast", "--bytes", 8, "--ranks", 2, "--lend")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--lend is not an option of broadcast", done.stderr)

    def test_points_and_policies_give_one_record_each(self):
        records = self.records("--kernels", "gemm=1ms", "--policy", "fifo,sa", "--workers", 2,
                               "--points", "n=2048:ranks=1,n=4096:ranks=6:grid=3x2")
        self.assertEqual([(r["n"], r["ranks"], r["workers"], r["policy"]) for r in records],
                         [(2048, 1, 2, "fifo"), (2048, 1, 2, "sa"), (4096, 6, 2, "fifo"),
                          (4096, 6, 2, "sa")])
        for record in records:
            self.assertEqual(set(imbrex_simulate.RESULTS) - set(record), set())
            self.assertAlmostEqual(record["in_task"] + record["idle"] + record["overhead"], 1,
                                   places=5)
        self.assertEqual(records[2]["bytes"], records[2]["messages"] * 512 * 512 * 8)

    def test_a_stencil_whose_messages_hide_takes_the_time_of_its_cells(self):
        self.json.unlink(missing_ok=True)
        done = self.call("stencil1d", "--size", 500_000, "--ghost", 1000, "--chunks", 7, "--steps",
                         50, "--cell-ns", 20, "--ranks", 4, "--json", self.json, "--creator-us", 0,
                         "--task-us", 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        record, = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertAlmostEqual(record["seconds"], 50 * 125_000 * 20e-9, delta=0.002)
        self.assertEqual(record["messages"], 50 * 8)
        self.assertEqual(record["bytes"], 50 * 8 * 8000)
        self.assertEqual(record["tasks"], 50 * (4 * 9 + 16))
        self.assertEqual(record["size"], 500_000)

    def test_every_program_of_the_list_can_be_simulated(self):
        sizes = {"cholesky": "--n 2048 --kernels gemm=1ms",
                 "stencil1d": "--size 9000 --ghost 10 --steps 3 --cell-ns 5",
                 "stencil2d": "--blocks 8 --side 8 --steps 3 --kernels block=1ms",
                 "minife": "--n 8 --iterations 2 --kernels multiply=3ms,add=1ms,dot=1ms",
                 "hpcg": "--n 8 --blocks 2 --iterations 2 "
                         "--kernels smooth=3ms,multiply=2ms,add=1ms,dot=1ms,fill=1ms",
                 "exchange": "--n 64 --chunks 4 --parts 4 --kernels line=10us",
                 "wavefront": "--rows 1000 --columns 900 --outer-rows 300 --outer-columns 300 "
                              "--inner-rows 50 --inner-columns 60 --kernels tile=1ms",
                 "pool": "--tree T1 --kernels node=300ns",
                 "broadcast": "--bytes 1000000 --rounds 2"}
        self.assertEqual(sizes.keys(), imbrex_simulate.PROGRAMS.keys())
        for program, words in sizes.items():
            done = self.call(program, "--ranks", 4, *words.split(), "--json", self.json)
            self.assertEqual(done.returncode, 0, f"{program}: {done.stderr}")
            record, = json.loads(self.json.read_text(encoding="utf-8"))
            self.assertGreater(record["seconds"], 0, program)
            self.assertGreater(record["messages"], 0, program)

    def test_partial_exchanges_take_less_time_than_a_blocking_one(self):
        done = self.call("exchange", "--n", 512, "--chunks", 4, "--parts", 4, "--ranks", 4,
                         "--network", "netlab-100mbit", "--kernels", "line=1ms", "--json",
                         self.json, "--sweep", "variant=blocking,partial-blocks,messages")
        self.assertEqual(done.returncode, 0, done.stderr)
        records = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual([record["variant"] for record in records],
                         ["blocking", "partial-blocks", "messages"])
        self.assertLess(max(r["seconds"] for r in records[1:]), records[0]["seconds"])
        self.assertEqual({record["bytes"] for record in records}, {16 * 512 * 512})
        self.assertIn("partial-blocks      4 ", done.stdout)

    def test_a_sweep_ranks_the_values_of_any_option_and_draws_them(self):
        plot = self.folder / "sweep.svg"
        done = self.call("cholesky", "--n", 4096, "--kernels", "gemm=6ms", "--ranks", 4, "--policy",
                         "fifo,sa", "--sweep", "workers=1,2,8", "--plot", plot, "--json", self.json)
        self.assertEqual(done.returncode, 0, done.stderr)
        records = json.loads(self.json.read_text(encoding="utf-8"))
        self.assertEqual([(r["workers"], r["policy"]) for r in records],
                         [(1, "fifo"), (1, "sa"), (2, "fifo"), (2, "sa"), (8, "fifo"), (8, "sa")])
        for policy in ("fifo", "sa"):
            ranking = done.stdout.split(f"n = 4096, 4 ranks, policy {policy}:\n")[1]
            ratios = [float(line.split()[1]) for line in ranking.split("\n\n")[0].splitlines()]
            self.assertEqual(ratios[0], 1)
            self.assertEqual(ratios, sorted(ratios))
            self.assertEqual(len(ratios), 3)
        drawn = plot.read_text(encoding="utf-8")
        xml.etree.ElementTree.fromstring(drawn)
        self.assertEqual(drawn.count("<rect"), 1 + 6)

    def test_a_sweep_over_policies_is_a_list_of_policies(self):
        arguments = ("cholesky", "--n", 2048, "--kernels", "gemm=6ms", "--ranks", 4)
        self.assertEqual(self.call(*arguments, "--sweep", "policy=fifo,sa").stdout,
                         self.call(*arguments, "--policy", "fifo,sa").stdout)

    def test_a_slow_rank_keeps_the_others_waiting(self):
        arguments = ("--n", 4096, "--ranks", 4, "--kernels", "gemm=6ms", "--policy", "fifo")
        even, slow = (self.records(*arguments, *more)[0]["seconds"]
                      for more in ((), ("--slow", "1:2")))
        self.assertGreater(slow, 1.2 * even)

    def test_the_network_counts(self):
        network = self.file("slow.network", NETWORK)
        arguments = ("--n", 4096, "--ranks", 4, "--kernels", "gemm=1us", "--policy", "fifo")
        slow, = self.records(*arguments, "--network", network)
        fast, = self.records(*arguments, "--network", "hdr")
        # 2 MiB a tile at 1 GB/s: the chain of a step has two messages, of 7 steps.
        self.assertGreater(slow["seconds"], 14 * 2.1e-3)
        self.assertLess(fast["seconds"], slow["seconds"] / 10)

    def test_two_runs_print_the_same(self):
        arguments = ("cholesky", "--n", 8192, "--ranks", 4, "--workers", 3, "--kernels",
                     "gemm=1ms", "--policy", "default,fa,ga")
        self.assertEqual(self.call(*arguments).stdout, self.call(*arguments).stdout)

    def test_the_list_names_every_network(self):
        said = self.call("--list").stdout
        for name in imbrex_simulate.network_names():
            self.assertIn(name, said)
            imbrex_simulate.read_network(name)

    def refused(self, text, *arguments):
        self.json.write_text("[]", encoding="utf-8")
        done = self.call(*arguments, "--json", self.json)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(text, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(self.json.read_text(encoding="utf-8"), "[]", "nothing is half-written")

    def test_bad_input_is_refused(self):
        good = ("cholesky", "--n", 1024, "--kernels", "gemm=6ms")
        self.refused("name a program")
        self.refused("there is no program lu", "lu")
        self.refused("--n is missing", "cholesky", "--kernels", "gemm=6ms")
        self.refused("--kernels is missing", "cholesky", "--n", 1024)
        self.refused("--cell-ns is missing", "stencil1d", "--size", 100, "--ghost", 1)
        self.refused("fewer than three ghost layers", "stencil1d", "--size", 100, "--ghost", 40,
                     "--cell-ns", 1)
        for text, *arguments in (
                ("not a whole number", "--n", "1e5"), ("--n: 0 is not a whole", "--n", 0),
                ("--points: ranks=0", "--points", "ranks=0"),
                ("--grid 3x2 is not for 4 ranks", "--ranks", 4, "--grid", "3x2"),
                ("give ROWSxCOLUMNS", "--grid", "3by2"), ("did you mean fifo", "--policy", "ffo"),
                ("seeded", "--policy", "seeded:3"), ("neither a file", "--network", "nope"),
                ("there is no kernel foo", "--kernels", "foo=3ms"),
                ("give a time above 0", "--kernels", "gemm=-3ms"),
                ("give a time above 0", "--kernels", "gemm=3"),
                ("neither a file nor", "--kernels", "gemm"), ("give gemm", "--kernels", "trsm=3ms"),
                ("valid: 0 to 1e+09", "--creator-us", "-1"),
                ("valid: 0 to 1e+09", "--creator-us", "nan"),
                ("give NAME=VALUE", "--points", "n=3,x=4"), ("numbered from 0", "--slow", "1:2"),
                ("RANK:FACTOR", "--slow", "0:0"),
                ("give OPTION=VALUE", "--sweep", "policy"), ("give OPTION=VALUE", "--sweep", "x=1"),
                ("--sweep ranks=two: two is not a whole", "--sweep", "ranks=1,two"),
                ("valid: auto, poll", "--sweep", "progress=fast"),
                ("ends with .svg", "--plot", "a.gif"), ("cannot be written", "--plot", "/a/b.svg"),
                ("there is no option", "--nn", 3)):
            self.refused(text, *good, *arguments)

    def test_wrong_sizes_of_programs_are_refused(self):
        for text, *arguments in (
                ("--n is missing", "exchange", "--kernels", "line=1us"),
                ("as line=6ms", "exchange", "--n", 64),
                ("n = 64 is not a multiple of the 3 ranks", "exchange", "--n", 64, "--ranks", 3,
                 "--kernels", "line=1us"),
                ("missing: add, dot", "minife", "--n", 8, "--kernels", "multiply=1ms"),
                ("as 40gflops", "minife", "--n", 8, "--kernels", "multiply=3gflops"),
                ("n = 9 is not a multiple of 8", "hpcg", "--n", 9, "--kernels",
                 "smooth=3ms,multiply=2ms,add=1ms,dot=1ms,fill=1ms"),
                ("there is no tree T17; trees: T1", "pool", "--tree", "T17", "--kernels",
                 "node=1us"),
                ("tree=oak: valid: auto, star", "broadcast", "--bytes", 9, "--ranks", 2,
                 "--tree", "oak"),
                ("valid: 1 to 1,024 for minife", "minife", "--n", 1025, "--kernels",
                 "multiply=1ms,add=1ms,dot=1ms"),
                ("--tile is not an option of pool", "pool", "--tile", 3, "--kernels", "node=1us"),
                ("--grid is not an option of minife", "minife", "--n", 8, "--grid", "1x1"),
                ("broadcast has no --kernels", "broadcast", "--bytes", 9, "--kernels", "a=1s"),
                ("--blocks: 0 is not a whole number", "stencil2d", "--blocks", 0,
                 "--kernels", "block=1s"),
                ("valid: 1 to 1,048,576", "stencil2d", "--steps", 9 ** 9, "--kernels", "block=1s")):
            self.refused(text, *arguments)

    def test_files_are_refused_with_the_line(self):
        for line, text in (("latency_us 1", "4: not NAME = VALUE"),
                           ("latency_us = fast", "4: latency_us: not a number: fast"),
                           ("latency_us = -1", "4: latency_us = -1: out of range"),
                           ("gbit_per_s = 0", "4: gbit_per_s = 0: out of range"),
                           ("latencyus = 1", "4: there is no parameter latencyus"),
                           ("", "missing: latency_us, gap_us")):
            network = self.file("bad.network", f"# one\noverhead_us = 0\n\n{line}\n")
            self.refused(f"{network}:{' ' if text.startswith('missing') else ''}{text}", "cholesky",
                         "--n", 1024, "--kernels", "gemm=6ms", "--network", network)
        kernels = self.file("kernels", "gemm = 6ms\ntrsm = 3parsec\n")
        self.refused(f"{kernels}:2: trsm=3parsec", "cholesky", "--n", 1024, "--kernels", kernels)

    def test_large_simulations_say_what_they_need(self):
        self.assertEqual(self.call("cholesky", "--n", 512, "--kernels", "gemm=6ms").stderr, "")
        done = self.call("cholesky", "--n", 512 * 182, "--kernels", "gemm=6ms", "--workers", 16)
        self.assertIn("1.0 million tasks, at most 0.6 GiB", done.stderr)


class Calibrate(unittest.TestCase):
    PRINTED = {"half_round_trip": 10, "stream_small": 3, "in_send": 2, "eager_limit": 4000,
               "copied": 4000, "in_send_copied": 3, "large": 1000000, "stream_large": 800,
               "sender_answers": 1}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def calibrate(self, *arguments):
        return subprocess.run([Simulate.imbrex, "calibrate", *map(str, arguments)], cwd=self.folder,
                              capture_output=True, text=True, check=False, timeout=200)

    def test_the_parameters_give_back_what_was_measured(self):
        found = imbrex_calibrate.parameters_of(
            {name: str(value) for name, value in self.PRINTED.items()}, "")
        self.assertAlmostEqual(found["latency_us"] + 2 * found["overhead_us"], 10)
        self.assertAlmostEqual(found["overhead_us"] + found["gap_us"], 3)
        self.assertAlmostEqual(found["gbit_per_s"], 10)
        self.assertAlmostEqual(found["copy_gbit_per_s"], 32)
        self.assertEqual((found["eager_bytes"], found["sender_answers"]), (4000, 1))

    def test_a_third_rank_gives_the_parameters_within_a_node(self):
        printed = {name: str(value) for name, value in self.PRINTED.items()}
        printed |= {f"node_{name}": str(value / 2) for name, value in self.PRINTED.items()}
        text = imbrex_calibrate.network_of(printed, "mpirun -n 3")
        self.assertIn("node_latency_us = 3\n", text)  # 5 less twice 1
        self.assertIn("latency_us = 6\n", text)

    @unittest.skipUnless(shutil.which("mpirun") and shutil.which("mpicc"), "there is no MPI")
    def test_the_file_of_the_mpi_at_hand_can_be_simulated(self):
        done = self.calibrate("-o", "mine.network", "--", "mpirun", "-n", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        network = imbrex_simulate.read_network(str(self.folder / "mine.network"))
        self.assertGreater(network["latency_ns"], 0)
        self.assertGreater(network["eager_bytes"], 0)
        self.assertEqual(sorted(self.folder.iterdir()), [self.folder / "mine.network"])

    def test_bad_launchers_are_refused(self):
        for text, *arguments in (("name a launcher",), ("name a launcher", "--"),
                                 ("there is no command nothing", "--", "nothing"),
                                 ("nomcc", "--mpicc", "nomcc", "--", "true"),
                                 ("cannot be written", "-o", "/a/b", "--", "true")):
            done = self.calibrate(*arguments)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn(text, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [])

    @unittest.skipUnless(shutil.which("cc"), "there is no compiler")
    def test_a_program_that_measures_nothing_is_refused(self):
        compiler = self.folder / "fake"
        compiler.write_text("#!/bin/sh\nprintf '#!/bin/sh\\necho half_round_trip 3\\n' > $3\n"
                            "chmod +x $3\n", encoding="utf-8")
        compiler.chmod(0o755)
        done = self.calibrate("--mpicc", compiler, "--", "env")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has not measured stream_small", done.stderr)


if __name__ == "__main__":
    Simulate.imbrex = sys.argv.pop()
    os.environ |= {name: "1" for name in ("OMPI_ALLOW_RUN_AS_ROOT",
                                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")}
    unittest.main()
