# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: what all runners of bench/papers share, the pages of iwomp21 and capra from results
that are made here, each page of docs/papers from its stored results, the model of loops against a
sum by hand, bench/papers/all with programs that are scripts, and docs/papers/README.md against its
own rows."""
import argparse
import contextlib
import io
import json
import math
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

sys.dont_write_bytecode = True
import capra_model  # noqa: E402
import page  # noqa: E402
import readme_figures  # noqa: E402
import runner  # noqa: E402
from page import HERE  # noqa: E402
import records  # noqa: E402 (found by the lines before)


def sections(paper, lines):
    """{title: text} of the page of these results."""
    head = {"date": "2026-01-01", "cores": 2, "policy": "default", "results": lines}
    text = page.page_of(paper, head).text()
    return dict(section.split("\n", 1) for section in text.split("\n## "))


def main():
    """Without the modules that make pages, the tests are left out; ctest sees that by 77."""
    try:
        page.library("jinja2"), page.library("pandas")
    except SystemExit as error:
        print(f"left out: {error}")
        sys.exit(77)
    unittest.main()


class RunnerTest(unittest.TestCase):
    def test_a_run_that_was_ended_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = argparse.Namespace(missing=True,
                                           results=pathlib.Path(folder) / "results.json")
            results, key = [], {"part": "weak", "ranks": 2}
            self.assertTrue(runner.lacks(arguments, results, key))
            runner.keep(arguments, results, key, {"seconds": 1.5})
            self.assertFalse(runner.lacks(arguments, results, key))
            self.assertTrue(runner.lacks(arguments, results, {**key, "ranks": 4}))
            kept = json.loads(arguments.results.read_text())["results"]
            self.assertEqual(kept, results)
            self.assertEqual(kept[0]["seconds"], 1.5)
            self.assertRegex(kept[0]["date"], r"^\d{4}-\d\d-\d\d$")
            arguments.missing = False
            self.assertTrue(runner.lacks(arguments, results, key))

    def test_a_line_has_the_run_of_median_time_and_the_time_of_each(self):
        runs = iter(({"seconds": 3.0, "n": 3}, {"seconds": 1.0, "n": 1}, {"seconds": 2.0, "n": 2}))
        key, results = {"part": "real"}, [{"part": "real", "n": 9}]
        runner.measure(argparse.Namespace(repetitions=3), results, ["case"],
                       lambda case: next(runs), lambda case: key,
                       lambda lines: {"all": sum(line["n"] for line in lines)})
        self.assertEqual(results, [{
            "part": "real", "seconds": 2.0, "n": 2, "least_s": 1.0, "most_s": 3.0, "all": 6,
            "repetitions": 3, "each_s": {"0": 3.0, "1": 1.0, "2": 2.0}}])

    def test_a_simulation_that_fails_is_reported_and_adds_nothing(self):
        arguments, results = argparse.Namespace(missing=False, build=HERE), []
        with mock.patch.object(records, "simulate", side_effect=records.Failed("exit code 3")), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            runner.simulate(arguments, results, {"part": "weak", "ranks": 2}, "cholesky")
        self.assertEqual(results, [])
        self.assertEqual(said.getvalue(),
                         "simulate: weak 2\nbench: weak 2: exit code 3\n")

    def test_parts_run_in_their_order_and_build_what_they_need(self):
        order = []
        parts = {name: (lambda _, results, name=name: order.append(name) or results.append(
            {"part": name}), [f"program of {name}"]) for name in ("a", "b", "c")}
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(records, "prepare") as prepare, \
                mock.patch.object(page, "page_of") as page_of, \
                contextlib.redirect_stdout(io.StringIO()):
            path = pathlib.Path(folder) / "results.json"
            runner.main(argparse.Namespace(results=path, parts=["c", "a"], paper="x", page=path),
                        parts, cores=2)
            self.assertEqual(json.loads(path.read_text())["cores"], 2)
        self.assertEqual(order, ["a", "c"])
        self.assertEqual(prepare.call_args.args[1], ["program of a", "program of c"])
        self.assertEqual(len(page_of.call_args.args[1]["results"]), 2)


class TextTest(unittest.TestCase):
    def test_a_single_run_has_no_range(self):
        line = {"repetitions": 1, "least_s": 1.0, "most_s": 1.0}
        self.assertEqual(page.runs_of(line), "one run")
        self.assertEqual(page.runs_of({**line, "repetitions": 3, "most_s": 2}),
                         "1.000 to 2.000")

    def test_differences(self):
        self.assertEqual(page.off_by(1.51, 1), "+51 %")
        self.assertEqual(page.off_by(1.1, 1), "+10 %")
        self.assertEqual(page.off_by(0.999, 1), "0 %")
        self.assertIsNone(page.off_by(None, 1))

    def test_values_take_the_places_of_a_row(self):
        self.assertEqual(page.rows([("a", 1, None)], "| `{}` | {:,.2f} | {:+.1f} % |"),
                         "| `a` | 1.00 | - |")
        self.assertEqual(page.rows([(1, 2.0, 3.0), (4, "one run", math.nan)],
                                   "| {} | {:.1f} | ..."), "| 1 | 2.0 | 3.0 |\n| 4 | one run | - |")
        self.assertEqual(page.rows([(2, 1, 3)], "{} ({} to {})"), "| 2 (1 to 3) |")
        frame = page.frame_of([{"n": 1, "s": 0.5}, {"n": 2}], "n", "s")
        self.assertEqual(page.rows(frame, "{} | {:.3f}"), "| 1 | 0.500 |\n| 2 | - |")

    def test_a_paragraph_of_a_template_is_a_line_of_the_page(self):
        table = "| g |\n|---|\n| h |\n"
        code = "```sh\ne\nf\n```\n\n"
        self.assertEqual(page.unfolded(f"# A\n\none\ntwo\n\n- b\n  c\n- d\n\n{code}{table}"),
                         f"# A\n\none two\n\n- b c\n- d\n\n{code}{table}")

    def test_a_module_that_is_missing_is_named_with_its_package(self):
        with mock.patch.object(page.importlib, "import_module",
                               side_effect=ImportError("No module named 'pandas'")), \
                self.assertRaisesRegex(SystemExit, "No module named 'pandas'. Install "
                                                   "python3-pandas"):
            page.library("pandas")

    def test_days_and_commits(self):
        lines = [{"date": "2026-01-02", "commit": "b", "on": "two"},
                 {"date": "2026-01-01", "on": "one"}, {}]
        self.assertEqual(page.origin({"results": lines, "date": "2025-01-01"}),
                         "the results of 2026-01-01 to 2026-01-02 on one and on two (commit b)")
        self.assertEqual(page.origin({"results": [{}], "date": "2025-01-01"}),
                         "the results of 2025-01-01")
        lines = [{"date": "2026-01-01", "commit": str(number)} for number in range(5)]
        self.assertIn("(5 commits; ", page.origin({"results": lines}))


class SendsFirstTest(unittest.TestCase):
    def test_every_published_number_of_the_weak_scaling_has_its_place(self):
        lines = [{"part": "weak", "ranks": ranks, "policy": policy, "seconds": 2.0 * ranks}
                 for ranks in (1, 32) for policy in ("fifo", "ma1", "fa")]
        text = sections("iwomp21", lines)["Weak scaling (Table 3 and Figure 5)"]
        self.assertIn("| 32 | 64.00 | 33.36 | +92 % | 64.00 | figure only | 64.00 | 27.89 | +129 % "
                      "|", text)
        self.assertIn("| 32 | 3 % | 67 % | 3 % | figure only | 3 % | 81 % |", text)
        self.assertIn("- `fa` on 32 ranks, +129 %:", text)

    def test_counts_that_differ_are_named(self):
        lines = [{"part": "counts", "n": 131072, "ranks": ranks, "computation": 2829056,
                  "communication": count} for ranks, count in ((16, 388624), (32, 1))]
        text = sections("iwomp21", lines)["Numbers of tasks (Tables 2 and 4)"]
        self.assertIn("| 16-48 | 388,624 | 388,624 | yes |", text)
        self.assertIn("| 32-24 | 1 | 640,632 | NO |", text)

    def test_the_text_has_numbers_for_one_spread_alone(self):
        lines = [{"part": "spread", "spread": name, "policy": "fifo", "seconds": seconds,
                  "in_task": 0.5, "idle": 0.4, "overhead": 0.1}
                 for name, seconds in (("16-48", 20.0), ("32-24", 25.0))]
        text = sections("iwomp21", lines)["Ranks against threads (Figure 4)"]
        self.assertIn("| 16-48 | `fifo` | 20.0 | 10.0 | 8.0 | 2.0 | figure only | - | figure only "
                      "| - |", text)
        self.assertIn("| 32-24 | `fifo` | 25.0 | 12.5 | 10.0 | 2.5 | 33.2 | -25 % | 8.0 | +25 % |",
                      text)
        self.assertIn("Under `fifo` 32-24 is the slowest spread, and 16-48 takes 20.0 % less time",
                      text)

    def test_gains_stand_beside_the_published_ones(self):
        lines = [{"part": "weak", "ranks": 32, "policy": policy, "seconds": seconds}
                 for policy, seconds in (("fifo", 40.0), ("sa", 30.0), ("fa", 40.001))]
        text = sections("iwomp21", lines)["Weak scaling (Table 3 and Figure 5)"]
        self.assertIn("| 32 | 25.0 % | 19.0 % | 0.0 % | 16.4 % |", text)

    def test_another_order_of_the_policies_than_in_the_paper_is_named(self):
        shared = {"part": "spread", "in_task": 0.5, "idle": 0.4, "overhead": 0.1}
        lines = [{**shared, "spread": name, "policy": policy, "seconds": seconds}
                 for name, fa in (("16-48", 2.1), ("64-12", 1.9))
                 for policy, seconds in (("sa", 2.0), ("fa", fa))]
        title = "Ranks against threads (Figure 4)"
        self.assertIn("At 64-12 `fa` is faster than `sa`", sections("iwomp21", lines)[title])
        self.assertNotIn("faster", sections("iwomp21", lines[:2])[title])


class StoredTest(unittest.TestCase):
    def test_each_page_is_what_its_results_give(self):
        for paper in page.PAPERS:
            with self.subTest(paper):
                self.assertEqual(page.path_of(paper).read_text(), page.page_of(paper).text(),
                                 f"bench/papers/page.py {paper} writes the page again")

    def test_a_page_shows_one_part_alone_and_nothing_else(self):
        for paper in set(page.PAPERS) - {"task_bench"}:  # whose parts are rows of every table
            stored = page.stored(paper)
            for part in page.values(stored["results"], "part"):
                lines = page.of(stored["results"], part)
                with self.subTest(paper=paper, part=part):
                    text = page.page_of(paper, {**stored, "results": lines}).text()
                    self.assertIn("\nNot measured.\n", text)

    def test_the_figures_of_readme_are_the_stored_ones(self):
        text = (records.SOURCE / "README.md").read_text()
        self.assertEqual(text, readme_figures.written(text),
                         "bench/papers/readme_figures.py writes the figures again")

    def test_the_picture_of_readme_is_drawn_from_the_stored_traces(self):
        timelines = runner.program("readme_timelines")
        kept = json.loads(timelines.KEPT.read_text())
        self.assertEqual(timelines.PICTURE.read_text(), timelines.picture(kept),
                         "bench/papers/readme_timelines --draw draws the picture again")
        xml.etree.ElementTree.fromstring(timelines.picture(kept))
        kept["tasks"]["ranks"][0][0][2] += 1000
        self.assertNotEqual(timelines.PICTURE.read_text(), timelines.picture(kept))


class HcmpiTest(unittest.TestCase):
    def test_simulated_points_stand_beside_the_published_ones(self):
        lines = [{"part": "table4", "nodes": 8, "cores": 12, "seconds": 192.3 * 1.1}]
        text = sections("ipdps13", lines)[
            "Smith-Waterman on 8 to 96 nodes (Table IV, simulated)"]
        self.assertIn("| 12 | 211.5 | 192.3 | +10 % | - | 102.2 | - |", text)
        self.assertIn("largest difference of 1 points is 10 %", text)
        lines = [{"part": "pool", "tree": "T1XXL", "nodes": nodes, "cores": 16, "in_task": 0.9,
                  "seconds": 2.0 * 64 / nodes * factor} for nodes, factor in ((64, 1), (128, 2))]
        text = sections("ipdps13", lines)[
            "UTS on 4 to 1,024 nodes (Table III, Figures 16 to 19, simulated)"]
        self.assertIn("| 128 | 2048 | 2.000 | 90.0 |", text)
        self.assertIn("| 64 | 16 | 2.000 | 2.842 | -30 % | 1.800 | 2.765 |", text)
        self.assertIn("11 of 12 rows have not been simulated", text)

    def test_the_verdict_counts_rows(self):
        lines = [{"part": "synchronisation", "benchmark": "sync_strict_2x1", "system": system,
                  "median_ns": ns, "min_ns": ns}
                 for system, ns in (("imbrex", 2), ("MPI", 1), ("MPI+OpenMP", 3))]
        self.assertIn("faster than MPI in 0 of 1 rows and than MPI+OpenMP in 1 of 1 rows",
                      sections("ipdps13", lines)["Barriers and reductions (Table II)"])

    def test_a_communication_worker_stands_beside_auto(self):
        lines = [{"part": "communication_worker", "name": "UTS", "system": "imbrex", "shape": "4x4",
                  "progress": progress, "seconds": seconds, "repetitions": 1}
                 for progress, seconds in (("auto", 2.0), ("dedicated-thread", 3.0))]
        text = sections("ipdps13", lines)["A communication worker"]
        self.assertIn("| UTS | imbrex | dedicated-thread | 4 x (3 + 1) | 3.000 | one run |", text)
        self.assertIn("- UTS: a communication worker takes 1.50 times as long as `auto`", text)

    def test_all_columns_of_table_2(self):
        lines = [{"part": "synchronisation", "benchmark": "sync_fuzzy_2x1", "system": "imbrex",
                  "median_ns": 1, "min_ns": 1}]
        text = sections("ipdps13", lines)["Barriers and reductions (Table II)"]
        row = next(line for line in text.splitlines() if line.startswith("| reduction | HCMPI |"))
        self.assertEqual(row.count("|"), 18 + 3)


class LoopsTest(unittest.TestCase):
    NETWORK = capra_model.Network(1e-6, 2e-7, 1e-9, 0)

    def seconds(self, network, **more):
        return capra_model.loops_s(network, **{
            "ranks": 4, "workers": 2, "cells": 4000, "ghost": 100, "steps": 10, "cell_s": 1e-8,
            "fork_join_s": 1e-6, **more})

    def test_by_hand(self):
        # A step: 800 cells of the core and 200 of the borders by 2 workers, two loops, a message.
        step = 1000 * 1e-8 / 2 + 2e-6 + (2 * 1e-6 + 2 * 2e-7 + 800 * 1e-9)
        self.assertAlmostEqual(self.seconds(self.NETWORK), 10 * step)

    def test_noise_costs_more_on_more_ranks(self):
        noisy = capra_model.Network(1e-6, 2e-7, 1e-9, 5)
        of = {ranks: self.seconds(noisy, ranks=ranks, cells=1000 * ranks, steps=200)
              for ranks in (2, 64)}
        self.assertGreater(of[2], self.seconds(self.NETWORK, steps=200))
        self.assertGreater(of[64], of[2])
        self.assertEqual(of[64], self.seconds(noisy, ranks=64, cells=64000, steps=200))

    def test_a_file_of_networks(self):
        network = capra_model.network_of(records.SOURCE / "tools/networks/edr.network", 3)
        self.assertAlmostEqual(network.latency_s, 0.9e-6)
        self.assertAlmostEqual(network.byte_s, 8e-9 / 97)
        self.assertEqual(network.noise, 3)

    def test_a_way_to_receive_has_its_median(self):
        capra, results, each = runner.program("capra"), [], iter((3.0, 1.0, 2.0))

        def run(*_, **__):
            return [{"bytes": 8, "way": "ICW", "us": next(each), "communication_us": 1.0,
                     "computation_us": 500.0, "blocking_us": 501.0},
                    {"bytes": 8, "way": "ICW", "us": 99.0, "computation_us": 1.0}]
        with mock.patch.object(capra, "mpis", lambda _: [("one", mock.Mock(run=run))]), \
                mock.patch.object(runner, "save"), contextlib.redirect_stdout(io.StringIO()):
            capra.receive(argparse.Namespace(missing=False, repetitions=3,
                                             results=HERE / "no_results.json"), results)
        self.assertEqual([(line["us"], line["least_us"], line["most_us"], line["repetitions"])
                          for line in results], [(2.0, 1.0, 3.0, 3)])

    def test_the_page(self):
        lines = [{"part": "scaling", "nodes": 16, "noise": noise, "loops_s": 0.002,
                  "tasks_s": 0.0015, "steps": 200} for noise in (0, 10)]
        text = sections("capra", lines)["The stencil by nodes (Figure 2 a, simulated)"]
        self.assertIn("| 16 | 2.00 | 1.50 | +25 % | 2.00 | 1.50 | +25 % |", text)
        self.assertIn("figure only", text)

    def test_the_price_of_tasks_has_per_cent(self):
        shared = {"part": "receive", "mpi": "one", "repetitions": 1, "communication_us": 1,
                  "blocking_us": 501}
        lines = [{**shared, "bytes": size, "way": way, "us": us}
                 for size, itcw, tasks in ((8, 500.0, 530.0), (16, 500.0, 550.0))
                 for way, us in (("ITCW", itcw), ("imbrex", tasks))]
        title = "A message beside a computation (Figure 1, a and b)"
        self.assertIn("takes 30 to 50 us longer than ITCW, 6 to 10 %:",
                      sections("capra", lines)[title])
        self.assertNotIn("longer than ITCW", sections("capra", lines[1:2])[title])


class AllTest(unittest.TestCase):
    def setUp(self):
        self.all = runner.program("all")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.calls = []

    def run_all(self, *words, code=0):
        said = io.StringIO()

        def run(_, paper, part):
            self.calls.append(f"{paper} {part}")
            return code
        with mock.patch.object(self.all, "run", run), contextlib.redirect_stderr(said), \
                mock.patch.object(sys, "argv", ["all", "--build", str(self.folder), *words]):
            return self.all.main(), said.getvalue()

    def test_everything_fits_in_ninety_minutes(self):
        self.assertLessEqual(sum(sum(parts.values()) for parts in self.all.PLAN.values()), 90)

    def test_it_knows_every_part_of_every_paper(self):
        for paper, parts in self.all.PLAN.items():
            if (HERE / paper).exists() and list(parts) != [""]:
                self.assertEqual(set(parts), set(runner.program(paper).PARTS), paper)
        papers = {path.name.removesuffix("_results.json") for path in HERE.glob("*_results.json")}
        self.assertLessEqual(papers, set(self.all.PLAN))

    def test_a_second_run_goes_on(self):
        code, said = self.run_all("--minutes", "1")
        self.assertEqual(code, 1)
        self.assertIn("run it again to go on", said)
        first = list(self.calls)
        code, said = self.run_all()
        self.assertEqual(code, 0)
        self.assertEqual(self.calls, [" ".join(entry[:2]) for entry in self.all.plan()])
        self.assertIn(f"{len(first)} of {len(self.calls)} parts are done", said)
        self.run_all()
        self.assertEqual(len(self.calls), len(self.all.plan()))
        self.run_all("--again")
        self.assertEqual(len(self.calls), 2 * len(self.all.plan()))

    def test_a_part_that_failed_is_run_again(self):
        code, said = self.run_all(code=3)
        self.assertEqual(code, 1)
        self.assertIn("ended with 3", said)
        count = len(self.calls)
        self.assertEqual(self.run_all()[0], 0)
        self.assertEqual(len(self.calls), 2 * count)


class OverviewTest(unittest.TestCase):
    """docs/papers/README.md: its sums are those of its rows."""

    def test_the_sums(self):
        text = (records.SOURCE / "docs" / "papers" / "README.md").read_text()
        table, _, rest = text.partition("\n## ")
        rows = [[cell.strip() for cell in line.strip("|\n").split("|")]
                for line in table.splitlines() if line.startswith("|")]
        states = rows[0][2:]
        sections = [[tuple(cell.strip() for cell in line.strip("|").split("|"))
                     for line in section.splitlines()
                     if re.match(r"\|(?! item|---)", line)] for section in rest.split("\n## ")]
        self.assertEqual([int(row[1]) for row in rows[2:-1]], [29, 19, 36, 19, 39])
        for row, items in zip(rows[2:], sections):
            self.assertEqual(int(row[1]), len(items), row[0])
            self.assertEqual([int(cell) for cell in row[2:]],
                             [sum(item[1] == state for item in items) for state in states])
            for item in items:
                self.assertEqual(len(item), 3, item)
                self.assertIn(item[1], states, item)
                self.assertTrue(item[2], item)
        self.assertEqual([int(cell) for cell in rows[-1][1:]],
                         [sum(column) for column in zip(*([int(cell) for cell in row[1:]]
                                                          for row in rows[2:-1]))])


if __name__ == "__main__":
    main()
