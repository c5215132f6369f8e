# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: the model of bench/papers/ics19 against cases that can be told by hand, against what
can never be, and against a table of another simulation, made before this one; then the way of the
figures, with a program that is a script: its command, its medians, the file of results, the
page."""
import argparse
import functools
import itertools
import json
import math
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import ics19_model as model  # noqa: E402
import ics19_page  # noqa: E402
import papers_test  # noqa: E402
import runner  # noqa: E402
from page import HERE, page_of  # noqa: E402
import records  # noqa: E402 (found by the lines before)

RATIOS = (0.5, 1, 2)  # communication to computing
# Per cent less time than blocking. That simulation had ranks that share cores, and messages that
# share a link, which cost time; this model has neither.
TABLE = {
    ("fft2d", 2): {"RB": (14, 10, 7), "RL": (27, 22, 15), "ST": (30, 45, 31),
                   "bound": (33, 47, 31)},
    ("fft2d", 4): {"RB": (13, 14, 9), "RL": (25, 23, 16), "ST": (27, 41, 31),
                   "bound": (33, 47, 31)},
    ("fft3d", 4): {"RL": (24, 29, 19), "ST": (27, 41, 32), "bound": (33, 48, 32)},
    ("wordcount", 2): {"RB": (3, 3, 2), "RL": (6, 5, 3), "ST": (30, 46, 31), "bound": (33, 47, 31)},
    ("wordcount", 4): {"RB": (5, 4, 3), "RL": (6, 5, 3), "ST": (27, 41, 31), "bound": (33, 47, 31)},
    ("matvec", 2): {"RB": (17, 12, 8), "RL": (30, 23, 16), "ST": (30, 45, 32),
                    "bound": (33, 47, 31)},
    ("matvec", 4): {"RB": (17, 19, 12), "RL": (27, 24, 16), "ST": (27, 41, 32),
                    "bound": (33, 47, 31)}}


def program_of(name, ranks, ratio):
    if name == "fft2d":
        return model.fft_2d(0.5, 0.5, ratio, ranks)
    if name == "fft3d":
        return model.fft_3d((1 / 3,) * 3, (ratio / 2,) * 2, (2, 2))
    maps = {"wordcount": 0.9, "matvec": 0.5}[name]
    return model.map_reduce(maps, 1 - maps, ratio, ranks)


class ModelTest(unittest.TestCase):
    def test_the_table(self):
        for (name, ranks), ways in TABLE.items():
            for way, figures in ways.items():
                for ratio, figure in zip(RATIOS, figures):
                    program = program_of(name, ranks, ratio)
                    ours = model.bound(program) if way == "bound" else model.saved(program, way)
                    # The model leaves out costs of the measured runs: up to 4.5 with a core for
                    # each rank, and 8.5 on shared ones; least if communication hides computing.
                    most = 1.1 if way == "bound" else 2.5 if ratio == 2 else \
                        4.5 if ranks == 2 else 8.5
                    with self.subTest(name=name, ranks=ranks, way=way, ratio=ratio):
                        self.assertLess(ours, figure + most)
                        self.assertGreater(ours, figure - 0.7)

    def test_the_paper_s_gain_needs_its_ranks(self):
        program = model.fft_2d(0.5, 0.5, 0.5, 16, 65536)
        self.assertAlmostEqual(1 / (1 - model.saved(program, "RB") / 100), 1.26, delta=0.02)

    def test_two_ranks_have_the_blocks_that_were_counted_by_hand(self):
        # Own block meanwhile, then the other's, then what needs both; 2^12 points, so 2/12 of it.
        program = model.fft_2d(3, 6, 10, 2, points=4096)
        self.assertAlmostEqual(program.joined, 1 / 6)
        self.assertAlmostEqual(model.seconds(program, "RB"), 3 + 10 + 2.5 + 1)

    def test_lines_match_a_count_by_hand(self):
        program = model.fft_2d(3, 8, 4, 2, parts=4)
        # 4 groups each way: the first is here after 1 second, and computing takes longer.
        self.assertAlmostEqual(model.seconds(program, "RL"), 3 + 1 + 8)
        program = model.fft_2d(3, 2, 4, 2, parts=4)
        self.assertAlmostEqual(model.seconds(program, "RL"), 3 + 4 + 0.5)

    def test_streaming_matches_a_count_by_hand(self):
        # The first chunk leaves after 1 second, the link works until 9, the last piece takes 0.25.
        program = model.map_reduce(4, 2, 8, 2, parts=4)
        self.assertAlmostEqual(model.seconds(program, "ST"), 9.25)

    def test_one_part_and_no_pieces_save_nothing(self):
        program = model.Program((1, 2), (3,), (2,), parts=1, joined=1.0)
        for way in model.SCHEMES:
            self.assertAlmostEqual(model.seconds(program, way), program.blocking_s)

    def test_never_more_than_blocking_or_less_than_the_bound(self):
        shares = (0, 0.1, 0.5, 0.9, 1)
        for name, ranks, before, ratio, parts in itertools.product(
                ("fft2d", "fft3d", "mapreduce"), (2, 4, 5), shares, (0, 0.01, 1, 3), (1, 2, 7)):
            if name == "fft2d":
                program = model.fft_2d(before, 1 - before, ratio, ranks, parts=parts)
            elif name == "fft3d":
                program = model.fft_3d((before, 1, 1 - before), (ratio, ratio), (2, ranks),
                                       parts=parts)
            else:
                program = model.map_reduce(before, 1 - before, ratio, ranks, parts)
            least = min(model.bound_s(program), program.blocking_s)
            for way in model.SCHEMES:
                with self.subTest(program=program, way=way):
                    seconds = model.seconds(program, way)
                    self.assertLess(seconds, program.blocking_s + 1e-9)
                    self.assertGreater(seconds, least - 1e-9)

    def test_an_unknown_way_is_named(self):
        with self.assertRaisesRegex(ValueError, "there is no scheme XY: one of RB, RL, ST"):
            model.seconds(model.map_reduce(1, 1, 1, 2), "XY")

    def test_hidden(self):
        self.assertAlmostEqual(model.hidden(0.25), 100 / 3)
        self.assertEqual(model.hidden(1.0), math.inf)


sections = functools.partial(papers_test.sections, "ics19")


# Plays every program, and mpirun: it writes what they would. The third run takes longest.
SCRIPT = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
if "--help" in words:
    print("  --variant TEXT:VARIANTS ...")
    sys.exit(0)
count = pathlib.Path(__file__).with_name("count")
number = int(count.read_text()) if count.exists() else 0
count.write_text(str(number + 1))
value = lambda name: words[words.index(name) + 1]
runs = [{"variant": name, "seconds": (2 if name == "blocking" else 1) * (1, 1.5, 4)[number % 3],
         "transpose_s": 1.0 * (1, 1.5, 4)[number % 3]} for name in value("--variant").split(",")]
pathlib.Path(value("--json")).write_text(json.dumps(
    {"n": 64, "parts": 16, "kernels": "timed", "runs": runs}))
"""


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        self.bench = runner.program("ics19")
        self.arguments = argparse.Namespace(
            build=self.folder, repetitions=3, ratio=[1.0], n2=64, n3=16, tuple_bytes=1000,
            sides2=[64, 128], sides3=[16], rows=[64, 128], words=[1, 4],
            programs=tuple(ics19_page.TITLES),
            mpi=records.MpiRunner.__new__(records.MpiRunner))
        vars(self.arguments.mpi).update(build=self.folder, mpirun="mpirun", yields=False,
                                        environment={})

    def script(self, name, variants):
        path = self.folder / "bin" / name
        path.write_text(SCRIPT.replace("VARIANTS", "{" + variants + "}"))
        path.chmod(0o755)
        return path

    def test_variants_are_those_of_help(self):
        self.script("fft", "all,blocking,partial")
        self.assertEqual(self.bench.variants_of(self.arguments, "fft"), ["blocking", "partial"])
        self.script("fft", "")
        cases = self.bench.fft_cases
        (self.folder / "bin" / "fft").write_text("#!/bin/sh\nexit 1\n")
        with self.assertRaisesRegex(SystemExit, "lists no variants"):
            cases(self.arguments)

    def test_runs_that_the_programs_cannot_do_are_left_out(self):
        self.script("fft", "blocking,library,messages")
        cases = self.bench.fft_cases(self.arguments)
        self.assertEqual({name for case in cases for name in case.names}, {"blocking", "messages"})

    def test_a_variant_that_an_option_makes_partial_runs_alone(self):
        self.script("mapreduce", "blocking,blocks,partial-receive")
        cases = self.bench.map_reduce_cases(self.arguments)
        names = [list(case.names) for case in cases if case.program == "matvec" and case.ranks == 2]
        self.assertEqual(names, [["blocking", "blocks"], ["partial-receive"]])
        for case in cases:
            said = self.bench.command_of(self.arguments, case, "--json", "run.json")
            self.assertEqual("IMBREX_PARTIAL=on" in said, "partial-receive" in case.names)
            self.assertEqual(said[said.index("--variant") + 1], ",".join(case.names))

        self.script("fft", "blocking,partial-blocks,partial,library")
        names = [(case.program, list(case.names)) for case in self.bench.fft_cases(self.arguments)
                 if case.names != {"blocking": "blocking, packed"} and case.ranks == 4]
        self.assertEqual(names, [("fft2d", ["blocking", "partial"]), ("fft2d", ["partial-blocks"]),
                                 ("fft2d", ["partial-blocks"]), ("fft3d", ["blocking", "partial"])])

    def test_blocks_by_lines_have_as_many_parts_as_groups(self):
        self.script("fft", "blocking,partial-blocks")
        for case in self.bench.fft_cases(self.arguments):
            said = self.bench.command_of(self.arguments, case, "run.json")
            parts = f"IMBREX_PARTIAL_PARTS={said[said.index('--parts') + 1]}"
            by_lines = self.bench.BY_LINES in case.names.values()
            self.assertEqual(parts in said, by_lines)
            self.assertTrue(not by_lines or "IMBREX_PARTIAL=on" in said)

    def test_computing_takes_as_long_as_the_exchange(self):
        self.script("fft", "blocking")
        case = next(case for case in self.bench.fft_cases(self.arguments) if case.ranks == 4)
        line_us = float(case.command[case.command.index("--line-us") + 1])
        # 64 x 64 points of 16 bytes: a rank sends 3/4 of its quarter; it has 16 lines, twice.
        self.assertAlmostEqual(32 * line_us * 1e-6, 8 * 16 * 64 * 64 * 3 / 16 / 200e6, places=8)

    def test_sizes_have_one_dedicated_thread_and_equal_times(self):
        self.script("fft", "blocking,partial-blocks,partial-receive,partial,test")
        self.script("mapreduce", "blocking,partial-receive,partial,library")
        cases = self.bench.sizes_cases(self.arguments)
        keys = [tuple(self.bench.key_of(case, next(iter(case.names.values()))).items())
                for case in cases]
        self.assertEqual(len(set(keys)), len(cases))
        at = {(case.program, case.size["size"], *case.names.values()): case for case in cases}
        self.assertNotIn(("fft3d", 16, "partial-blocks"), at)
        said = self.bench.command_of(self.arguments, at["fft2d", 128, "CT-DE"], "run.json")
        self.assertIn("IMBREX_WORKERS=7", said)
        self.assertIn("IMBREX_PROGRESS=dedicated-thread", said)
        self.assertIn("taskset", said)

        def after(case, word):
            return case.command[case.command.index(word) + 1]
        # Eight workers: 16 * 64 * 64 / 4 bytes leave a rank, which has 64 lines.
        line_us = float(after(at["fft2d", 64, "blocking"], "--line-us"))
        self.assertAlmostEqual(64 / 8 * 1e-6 * line_us, 8 * 16 * 64 * 64 / 4 / 200e6, places=8)
        # A product of 64 x 64 on two ranks: each makes half, and each half goes to both.
        self.assertAlmostEqual(56 * after(at["matvec", 64, "blocking"], "--tuple-bytes"),
                               8 * 64 * 64 / 2, delta=56)
        maps = [float(after(at["wordcount", size, "blocking"], "--kernel-us").split(",")[0])
                for size in (1, 4)]
        self.assertAlmostEqual(maps[1], 4 * maps[0], delta=0.5)

    def test_a_command(self):
        self.script("fft", "blocking")
        case = self.bench.fft_cases(self.arguments)[0]
        command = self.bench.command_of(self.arguments, case, "--json", "run.json")
        self.assertEqual(command[1:7], ["--rate", "200mbit", "--per-rank", "--", "mpirun", "-n"])
        self.assertIn("IMBREX_WORKERS=1", command)
        self.assertEqual(command[-2:], ["--json", "run.json"])
        case = self.bench.solver_case("solvers", "hpcg", 2, 1, 100, "dedicated-thread",
                                      {"tasks": "dedicated-thread"}, (1,) * 5, 1, 104)
        self.assertIn("IMBREX_WORKERS=3", self.bench.command_of(self.arguments, case))

    def measured(self):
        self.script("fft", "blocking,test,messages")
        # Past mpirun and the network: only what the program writes matters here.
        self.bench.command_of = lambda arguments, case, *more, trace=None: [
            str(arguments.build / "bin" / "fft"), *map(str, (*case.command[1:], *more))]
        said, records.say = records.say, lambda text="": None
        self.addCleanup(setattr, records, "say", said)
        results = []
        cases = [case for case in self.bench.fft_cases(self.arguments)
                 if case.program == "fft2d" and case.ranks == 2 and len(case.names) > 1]
        self.bench.measure(self.arguments, cases, results)
        return results

    def test_medians(self):
        results = self.measured()
        line = next(line for line in results if line["system"] == "messages")
        self.assertEqual((line["seconds"], line["least_s"], line["most_s"]), (1.5, 1, 4))
        self.assertEqual(line["each_s"], {"0": 1, "1": 1.5, "2": 4})
        self.assertEqual((line["repetitions"], line["transpose_s"]), (3, 1.5))
        runner.replace(results, {"part": "fft", "system": "messages"}, {"seconds": 7})
        self.assertEqual([line["seconds"] for line in results if line["system"] == "messages"], [7])

    def test_the_page(self):
        lines = self.measured()
        found = sections(lines)
        text = found["The Fourier transform (Figure 10)"]
        modelled = model.saved(model.fft_2d(0.75, 0.75, 1.5, 2, 64), "ST")
        self.assertIn("| Fourier transform, 2-D | 2 | 1 | `messages` | 1.500 | 1.000 to 4.000 | "
                      f"50.0 % | ST | {modelled:.1f} % |", text)
        self.assertIn("failed: `partial` (Fourier transform, 2-D)", text)
        self.assertIn("+26.8 % (65536 x 65536)", text)
        self.assertNotIn("`messages`", found["Goals"])  # by hand
        for line in lines:
            line["system"] = line["system"].replace("messages", "partial")
        goals = sections(lines)["Goals"]
        self.assertIn("`partial`: per cent less time | 50.0 | >= 30.0 | yes |", goals)
        self.assertIn("| >= 75.0 | yes |", goals)

    def test_alltoall_alone(self):
        lines = {size: {"bytes": size, "rounds": 21, "library_ms": 2.0, "imbrex_ms": 2.5,
                        "ratio": 1.25, "decomposed": 21 * (size >= 1024)}
                 for size in (1023, 1024)}
        path = self.script("alltoall_alone", "")
        path.write_text("#!/bin/sh\n" + "".join(f"echo '{json.dumps(line)}'\n"
                                               for line in lines.values()))
        self.bench.command_of = lambda arguments, case: [str(path)]
        said, records.say = records.say, lambda text="": None
        self.addCleanup(setattr, records, "say", said)
        results = []
        self.bench.measure_alltoall(self.arguments, results)
        self.assertEqual([(line["ranks"], line["bytes"]) for line in results],
                         [(2, 1023), (2, 1024), (4, 1023), (4, 1024)])
        found = sections(results)
        self.assertIn("| 4 | 1,024 | 2.000 | 2.500 | 1.25 | 21 |", found["MPI_Alltoall alone"])
        goals = found["Goals"]
        self.assertIn("blocks of 1,023 bytes: calls that went block by block | 0.00 | <= 0 | yes |",
                      goals)
        self.assertIn("blocks of 1,024 bytes: time to the library's | 1.25 | <= 1.1 | NO |", goals)

    def test_solvers_on_the_page(self):
        key = {"part": "solvers", "program": "hpcg", "ranks": 2, "ratio": 1.0}
        shared = {"least_s": 1.0, "most_s": 3.0, "kernel_share": 0.5, "polls": 5.0,
                  "progress": "auto", "tests": 0.0,
                  "timed_polls": 600.0, "timed_polls_s": 0.003}
        lines = [{**key, **shared, "system": system, "seconds": seconds, "mpi_share": share,
                  "each_s": {"0": seconds}}
                 for system, seconds, share in (("blocking", 2.0, 0.4), ("auto", 1.5, 0.03),
                                                ("poll", 1.6, 0.05), ("test-each", 1.9, 0.2),
                                                ("blocking-tasks", 1.8, 0.4))]
        found = sections(lines)
        self.assertIn("one run | +33.3 % | +100.0 % | 3.0 % | 50.0 % |",
                      found["HPCG and miniFE (Figure 9)"])
        goals = found["Goals"]
        self.assertIn("t_blocking / t - 1, per cent | 33.3 | >= 50.0 | NO |", goals)
        self.assertIn("share outside of MPI after, per cent | 97.0 | >= 96.0 | yes |", goals)
        self.assertIn("| HPCG | 2 | +5.3 % | +33.3 % | `auto` | -1.5 % | +35.2 % |",
                      found["Beside TAMPI's way (Figure 13)"])
        said = found["Polls and callbacks"]
        self.assertIn("| HPCG | 2 | `poll` | 600 | 3.00 | - | - | - | 0 | - |", said)
        self.assertNotIn("polls to callbacks, number", said)

    def test_sizes_on_the_page(self):
        def line(program, size, system, *seconds):
            return {"part": "sizes", "program": program, "ranks": 2, "ratio": 1, "size": size,
                    "system": system, "seconds": sorted(seconds)[1], "repetitions": 3,
                    "least_s": min(seconds), "most_s": max(seconds),
                    "each_s": {str(n): value for n, value in enumerate(seconds)}}
        lines = [line("fft2d", 256, "blocking", 2.0, 2.0, 2.0),
                 line("fft2d", 256, "CT-DE", 2.5, 2.5, 4.0),
                 line("fft2d", 512, "blocking", 3.0, 3.0, 3.0),
                 line("fft2d", 512, "CT-DE", 3.0, 3.0, 3.0)]
        text = sections(lines)["Sizes in the ratios of the paper's, and CT-DE (Figures 10 and 12)"]
        self.assertIn("| Fourier transform, 2-D | 256^2 | 16384^2 | 2.000 | 2.000 to 2.000 | "
                      "-20.0 % (-50 to -20) | - |", text)
        self.assertIn("| Fourier transform, 2-D | 512^2 | 32768^2 | 3.000 |", text)
        self.assertIn("| Fourier transform, 2-D | -10.0 % | - | - | - | -4.0 % | +21.9 % |", text)

    def test_the_best_decomposition_of_each_is_compared(self):
        lines = [{"part": "decomposition", "program": "hpcg", "blocks": blocks, "system": system,
                  "seconds": seconds, "repetitions": 1, "each_s": {"0": seconds}, "port_bytes": 1e6,
                  "iterations": 5, "rate_mbit": 100}
                 for blocks, *times in ((1, 2.0, 3.0), (16, 4.0, 1.0))
                 for system, seconds in zip(("blocking-tasks", "auto"), times)]
        text = sections(lines)["Blocks of a worker"]
        self.assertIn("| HPCG | 16 | 4.000 | one run | 1.000 | one run | +300.0 % | 0.400 |", text)
        self.assertIn("fastest with these blocks a worker: `blocking-tasks` 1, `auto` 16. Between "
                      "the two the speed-up is +100.0 %.", text)

    def test_simulated_nodes_stand_beside_the_paper(self):
        lines = [{"part": "scaling", "program": "fft2d", "by": "nodes", "nodes": 16, "n": 23168,
                  "ratio": 0.5, "system": system, "seconds": seconds}
                 for system, seconds in (("blocking", 1.2), ("partial-blocks", 1.0))]
        lines += [{"part": "scaling", "program": "hpcg", "nodes": 16, "system": mode, "idle": 0.1,
                   "seconds": seconds} for mode, seconds in (("poll", 1.0), ("auto", 1.25))]
        lines += [{"part": part, "program": "fft2d", "ranks": 2, "ratio": 1, "by": "ranks",
                   "system": "messages", "seconds": seconds}
                  for part, seconds in (("scaling", 1.1), ("fft", 1.0))]
        text = sections(lines)["16 to 128 nodes, simulated (Figure 9, section 5.2.3)"]
        self.assertIn("| 0.5 | 16 | 23168^2 | 1.200 | +20.0 % | - | - |", text)
        self.assertIn("| HPCG | 16 | 1.000 | 10.0 % | -20.0 % | - | +3.2 % |", text)
        self.assertIn("| 2 | `messages` | 1.100 | 1.000 | +10 % |", text)

    def test_polls_beside_callbacks(self):
        key = {"part": "solvers", "program": "minife", "ranks": 4, "ratio": 1.0}
        shared = {"timed_polls": 600.0, "timed_polls_s": 0.003, "suspensions": 7.0, "seconds": 1.0,
                  "mpi_share": 0.3, "kernel_share": 0.5}
        lines = [{**key, **shared, "system": "poll", "timed_callbacks": 0.0,
                  "timed_callbacks_s": 0.0},
                 {**key, **shared, "system": "callback", "timed_callbacks": 50.0,
                  "timed_callbacks_s": 0.0001, "progress_notices": 40.0}]
        said = sections(lines)["Polls and callbacks"]
        self.assertIn("| miniFE | 4 | `callback` | 600 | 3.00 | 50 | 0.10 | 40 | - | 7 |", said)
        self.assertIn("| miniFE | 4 | 12.0 | 30.0 |", said)


class ResultsTest(unittest.TestCase):
    """Of all runners: one result a line, so that measuring again changes the lines measured."""

    def saved(self, head, results):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.json"
            runner.save(path, head, results)
            return path.read_text()

    def test_measuring_again_changes_one_line(self):
        head, key = {"date": "today"}, {"part": "b", "ranks": 2, "on": "one"}
        results = [{"seconds": 1.5, **key}, {"part": "a", "each_s": {"0": 1.0}, "on": "two"}]
        before = self.saved(head, results)
        self.assertEqual(before.count("\n"), 4)
        self.assertEqual(json.loads(before), {**head, "results": results[::-1]})
        runner.replace(results, key, {"seconds": 2.5})
        after = self.saved(head, results)
        self.assertEqual([pair for pair in zip(before.splitlines(), after.splitlines())
                          if len(set(pair)) == 2],
                         [tuple(json.dumps({**key, "seconds": seconds}, sort_keys=True)
                                for seconds in (1.5, 2.5))])

    def test_the_kept_results_are_written_in_this_form(self):
        for path in sorted(HERE.glob("*_results.json")):
            kept = json.loads(path.read_text())
            results = kept.pop("results")
            self.assertEqual(path.read_text(), self.saved(kept, results), path.name)


class BoundTest(unittest.TestCase):
    def test_by_hand(self):
        line = {"n": 64, "parts": 16, "line_us": 1000.0, "rate_mbit": 8, "seconds": 0.2}
        # 2 x 32 lines of 1 ms; what leaves, 16 x 64 x 64 / 4 bytes, passes at once.
        self.assertAlmostEqual(ics19_page.least_s(("fft2d", 2, 1), line), 0.064)
        self.assertAlmostEqual(ics19_page.bound(("fft2d", 2, 1), line), 68)
        line = {"chunks": 10, "tuple_bytes": 2_000_000, "map_us": 0, "reduce_us": 0,
                "rate_mbit": 80}
        self.assertAlmostEqual(ics19_page.least_s(("matvec", 2, 1), line), 1 - 0.0066)
        del line["tuple_bytes"]
        self.assertIsNone(ics19_page.least_s(("matvec", 2, 1), line))

    def test_no_kept_row_exceeds_what_is_possible(self):
        kept, rows = page_of("ics19"), 0
        for part in ("fft", "mapreduce", "real"):
            systems = dict(kept.settings(part))
            for setting, system, _, measured, _, _ in kept.gains(part):
                most = ics19_page.bound(setting, ics19_page.baseline(systems[setting]))
                with self.subTest(part=part, setting=setting, system=system):
                    self.assertTrue(most is None or measured <= most, (measured, most))
                rows += most is not None
        for setting, at in kept.settings("solvers"):
            most = ics19_page.most_hidden(at["blocking"])
            for system, line in at.items():
                with self.subTest(setting=setting, system=system):
                    self.assertLessEqual(ics19_page.speed_up(line, at["blocking"]), most)
                rows += 1
        self.assertGreater(rows, 60)


class PictureTest(unittest.TestCase):
    """The drawn figures, without the library that draws."""

    def test_gains_and_the_model(self):
        key = {"part": "mapreduce", "program": "matvec", "ranks": 2, "ratio": 1.0}
        kernels = {"map_us": 5.0, "reduce_us": 5.0, "chunks": 16}
        lines = [{**key, **kernels, "system": "blocking", "seconds": 2.0, "exchange_s": 1.0,
                  "each_s": {"0": 2.0}},
                 {**key, **kernels, "system": "blocks", "seconds": 1.8, "each_s": {"0": 1.8}}]
        axis = mock.MagicMock()
        ics19_page.Page({"results": lines}).draw_collective(axis, "mapreduce")
        places, bars = axis.barh.call_args.args
        self.assertEqual(places, [0])
        self.assertAlmostEqual(bars[0], 10)
        self.assertEqual(axis.plot.call_args.args[:2], ((12.5,), (0,)))

    def test_nothing_measured(self):
        axis = mock.MagicMock()
        ics19_page.Page({"results": []}).draw_collective(axis, "fft")
        ics19_page.Page({"results": []}).draw_solvers(axis, "hpcg")
        self.assertEqual([list(call.args[0]) for call in axis.barh.call_args_list], [[], []])


if __name__ == "__main__":
    papers_test.main()
