# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: METG of curves that are made by hand, and bench/papers/task_bench on programs
that are scripts: what it runs, what it keeps, how it goes on after it was stopped, and the page."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import papers_test  # noqa: E402
import runner  # noqa: E402
import records  # noqa: E402 (found by the line before)
import task_bench_page as page  # noqa: E402


def points(overhead_us, round_us=1.0, tasks=1000, cores=1, rounds=(64, 32, 16, 8, 4, 2, 1)):
    """A runtime that adds so much to each task."""
    return [[count, tasks, count * tasks, 1e-6 * tasks * (count * round_us + overhead_us) / cores]
            for count in rounds]


class Metg(unittest.TestCase):
    def test_is_twice_the_overhead_of_a_task(self):
        for overhead in (3.0, 8.0, 20.0):
            found, mark = page.metg(points(overhead), 1e6, 1)
            self.assertEqual(mark, "")
            self.assertAlmostEqual(found / (2 * overhead), 1, delta=0.03)

    def test_counts_the_time_of_all_cores(self):
        found, _ = page.metg(points(8.0, cores=2), 2e6, 2)
        self.assertAlmostEqual(found / 16, 1, delta=0.03)

    def test_says_so_where_the_sweep_does_not_reach(self):
        self.assertEqual(page.metg(points(1000.0), 1e6, 1)[1], ">")
        self.assertEqual(page.metg(points(0.01), 1e6, 1)[1], "<")

    def test_a_run_of_long_tasks_that_was_disturbed_is_no_measure(self):
        sweep = points(3.0)
        sweep[1][3] *= 10
        self.assertEqual(page.metg(sweep, 1e6, 1), page.metg(points(3.0), 1e6, 1))

    def test_the_best_rate_is_a_median_so_that_one_lucky_run_is_no_measure(self):
        lines = [{"part": "fft", "variant": "mpi", "shape": "1x1", "kernel": "compute",
                  "repetition": i, "points": points(1.0, rounds=(64,))} for i in range(3)]
        lines[1]["points"][0][3] /= 10
        self.assertAlmostEqual(page.best_rate(lines, 1, 2), 64 / 65 * 1e6, delta=1)


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.module = runner.program("task_bench")
        self.calls = []

    def run_script(self, *words, fails_at=None):
        """What it prints; a program that mpirun would start answers from points()."""
        def answer(ranks, program, arguments, environment, **more):
            if fails_at is not None and len(self.calls) >= fails_at:
                raise KeyboardInterrupt
            self.calls.append((ranks, program, arguments, environment, more))
            variant = arguments[arguments.index("--variant") + 1]
            cores = min(2, ranks * environment["OMP_NUM_THREADS"])
            overhead = {"mpi": 4.0, "openmp": 10.0, "tasks": 2.0, "iterate": 3.0,
                        "data": 5.0}[variant]
            if "rate" in more:  # a slow network, which imbrex hides
                overhead += 50.0 if variant in ("mpi", "openmp") else 0.0
            return [{"pattern": pattern, **dict(zip(self.module.POINTS, point))}
                    for pattern in arguments[arguments.index("--pattern") + 1].split(",")
                    for point in points(overhead, cores=cores)]

        mpi = mock.Mock(run=answer, mpirun="true")

        def prepare(arguments, *_, **__):
            arguments.mpi = mpi

        printed = io.StringIO()
        argv = ["task_bench", "--results", str(self.folder / "r.json"), "--page",
                str(self.folder / "page.md"), "--build", str(self.folder), *words]
        with mock.patch.object(sys, "argv", argv), \
                mock.patch.object(records, "prepare", prepare), \
                mock.patch.object(self.module, "CORES", 2), \
                mock.patch.object(page.Page, "draw"), contextlib.redirect_stderr(io.StringIO()), \
                contextlib.redirect_stdout(printed):
            self.module.main()
        return printed.getvalue()

    WORDS = ("--parts", "fft", "trivial", "--shapes", "2x1", "1x2", "--repetitions", "3")

    def test_runs_each_variant_on_each_shape_and_writes_the_page(self):
        printed = self.run_script(*self.WORDS)
        self.assertIn("StarPU-MPI is missing", printed)
        # 3 repetitions: 5 variants on 2x1, and all but plain MPI on 1x2.
        self.assertEqual(len(self.calls), 3 * (5 + 4))
        text = (self.folder / "page.md").read_text()
        self.assertIn("## METG(50 %) on 2 ranks x 1 worker\n", text)
        row = next(line for line in text.splitlines() if line.startswith("| `fft` |"))
        self.assertEqual(row.split("|")[-2].strip(), "not measured")
        self.assertRegex(row, r"\| 7\.8\d \(7\.8\d to 7\.8\d\) \|")
        self.assertRegex(text, r"\| `fft` \| yes \(0\.2\d\) \| yes \(0\.5\d\) \| 5\.00 to 68\.0 us "
                               r"\(0\.60\) \|")
        self.assertRegex(text, r"\| `trivial` \| yes \(0\.2\d\) \| no messages \| no messages \|")

    def test_a_network_has_long_tasks_and_large_outputs_and_one_kernel(self):
        self.run_script("--parts", "fft", "--shapes", "2x1-network", "2x1", "--repetitions", "1",
                        "--kernels", "compute", "imbalanced", "--variants", "mpi", "tasks")
        on_network = [call for call in self.calls if "rate" in call[4]]
        self.assertEqual((len(on_network), len(self.calls)), (2, 2 + 4))
        for _, _, arguments, _, more in on_network:
            self.assertEqual((more["rate"], more["mtu"]), ("1gbit", 9000))
            self.assertEqual(arguments[arguments.index("--bytes") + 1], 16384)
            self.assertIn("131072,65536", arguments[arguments.index("--rounds") + 1])
        text = (self.folder / "page.md").read_text()
        section = text[text.index("2 ranks x 1 worker, on a network of 1 Gbit/s"):]
        self.assertRegex(section, r"\| `fft` \| not measured \| yes \(0\.\d\d\) \|")
        self.assertIn("## METG(50 %) of imbalanced tasks on 2 ranks x 1 worker\n", text)
        self.assertNotIn("of imbalanced tasks on 2 ranks x 1 worker, on a network", text)

    def test_imbrex_is_faster_where_its_time_for_as_many_rounds_is_less(self):
        def results(overhead_us):
            return {"cores": 2, "results": [
                {"part": "fft", "variant": variant, "shape": "2x1", "kernel": "compute",
                 "repetition": 0, "points": points(us, cores=2)}
                for variant, us in overhead_us.items()]}

        def found(**overhead_us):
            return page.faster_at(page.Metgs(results(overhead_us), "compute"), "fft", "2x1", "2x1")

        self.assertEqual(found(mpi=4.0, tasks=5.0), "nowhere")
        self.assertEqual(found(mpi=4.0, tasks=3.0, data=9.0), "5.00 to 36.0 us (0.80)")
        self.assertEqual(found(mpi=4.0, tasks=3.92), "nowhere")  # within 2 % at each length
        self.assertEqual(found(mpi=4.0), "not measured")
        self.assertEqual(found(tasks=4.0), "not measured")

    def test_goes_on_where_it_stopped(self):
        with self.assertRaises(KeyboardInterrupt):
            self.run_script(*self.WORDS, fails_at=10)
        self.assertEqual(len(json.loads((self.folder / "r.json").read_text())["results"]), 20)
        self.assertIn("17 programs to run, 20 sweeps in", self.run_script(*self.WORDS))
        self.assertEqual(len(self.calls), 27)
        self.assertIn("0 programs to run, 54 sweeps in", self.run_script(*self.WORDS))
        # The script forgets 15 of the 54: the pattern fft with three variants.
        printed = self.run_script("--parts", "fft", *self.WORDS[3:], "--again", "--variants", "mpi",
                                  "tasks", "data")
        self.assertIn("15 programs to run, 39 sweeps in", printed)

    def test_a_sweep_on_the_network_with_slow_long_tasks_is_left_out(self):
        def lines(shape, slower):
            found = [{"part": "fft", "variant": "mpi", "shape": shape, "kernel": "compute",
                      "repetition": i, "points": points(1.0, cores=2)} for i in range(3)]
            for point in found[0]["points"]:
                point[3] *= slower
            return page.Metgs({"cores": 2, "results": found}, "compute").lines

        self.assertEqual(len(lines("2x1-network", 1.0)), 3)
        self.assertEqual([line["repetition"] for line in lines("2x1-network", 1.6)], [1, 2])
        self.assertEqual(len(lines("2x1", 1.6)), 3)

    def test_a_page_without_results_says_that_nothing_is_measured(self):
        self.run_script("--parts")
        text = (self.folder / "page.md").read_text()
        self.assertEqual(text.count("\nNot measured.\n"), len(page.SHAPES))
        self.assertNotIn(".png", text)
        self.assertEqual(self.calls, [])

    def test_a_goal_that_is_reached_within_the_spread_is_called_that(self):
        theirs = (2.0, 1.5, 3.0, "", 5)
        self.assertEqual(page.verdict((1.0, 0.9, 1.2, "", 5), theirs), "yes (0.50)")
        self.assertEqual(page.verdict((1.8, 1.7, 1.9, "", 5), theirs),
                         "yes, within the spread (0.90)")
        self.assertEqual(page.verdict((2.0, 1.7, 2.9, "", 5), theirs), "NO (1.00)")
        self.assertEqual(page.verdict(None, theirs), "not measured")

    def test_refuses_results_of_other_graphs(self):
        self.run_script(*self.WORDS)
        with self.assertRaisesRegex(SystemExit, "graphs of another size"):
            self.run_script(*self.WORDS, "--width", "8")


if __name__ == "__main__":
    papers_test.main()
