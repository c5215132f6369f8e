# SPDX-License-Identifier: BSD-3-Clause
"""Tests the frame of the benchmarks: turns, commands, a program that is missing, rows, and what is
kept. The programs are scripts."""
import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import records  # noqa: E402 (found by the line before)


class FrameTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        self.printed = io.StringIO()
        printing = contextlib.redirect_stdout(self.printed)
        printing.__enter__()
        self.addCleanup(printing.__exit__, None, None, None)
        self.arguments = argparse.Namespace(build=self.folder, no_build=True, json=False)

    def program(self, text):
        path = self.folder / "bin" / "program"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def runner(self):
        mpi = records.MpiRunner.__new__(records.MpiRunner)
        vars(mpi).update(build=self.folder, mpirun="mpirun", yields=True, environment={})
        return mpi

    def test_turns_go_forth_and_back(self):
        order = []
        found = records.take_turns(["a", "b", "c"], 2, lambda entry: order.append(entry) or entry)
        self.assertEqual(order, ["a", "b", "c", "c", "b", "a"])
        self.assertEqual(found, {place: {0: entry, 1: entry} for place, entry in enumerate("abc")})

    def test_a_failure_is_reported_and_the_others_go_on(self):
        def run(entry):
            if entry == ("b", 2):
                raise records.Failed("exit code 3")
            return entry[1]

        self.assertEqual(records.take_turns([("a", 1), ("b", 2)], 1, run), {0: {0: 1}, 1: {}})
        self.assertEqual(self.printed.getvalue(), "bench: b 2: exit code 3\n")

    def test_a_missing_program_ends_the_script_and_says_what_to_build(self):
        self.program("")
        with self.assertRaises(SystemExit) as raised:
            records.prepare(self.arguments, ["program", "one", "two"])
        self.assertEqual(raised.exception.code, "bench: not built: one, two. Build it: cmake "
                         f"--build {self.folder} --target one two")

    def test_a_command(self):
        path = str(self.folder / "bin" / "program")
        self.assertEqual(self.runner().command(2, "program", [1, "x"], {}),
                         ["mpirun", "-n", "2", path, "1", "x"])
        self.assertEqual(
            self.runner().command(4, "program", [], {"A": 1}, bind="none", before=["taskset"],
                                  rate="1gbit", per_rank=True),
            [str(records.NETLAB), "--rate", "1gbit", "--per-rank", "--", "mpirun",
             "--oversubscribe", "--bind-to", "none", "-n", "4", "taskset", "env", "A=1", path])

    def test_lines_of_a_program_and_how_it_fails(self):
        self.assertEqual(records.run_json([self.program('echo text; echo "{\\"a\\": $B}"')],
                                          {"B": 2}, 10), [{"a": 2}])
        for text, what in (("true", "it printed no measurement"),
                           ("echo why >&2; exit 3", "exit code 3: why"),
                           ("kill -9 $$", "signal 9"), ("exec sleep 5", "not done after 0.1 s")):
            with self.assertRaisesRegex(records.Failed, what):
                records.run_json([self.program(text)], {}, 0.1 if "sleep" in text else 10)

    def test_figures_in_a_file(self):
        program = self.program('[ -z "$1" ] || echo "{\\"a\\": 1}" >"$1"')
        self.assertEqual(records.run_file(lambda path: [program, path], {}, 10), {"a": 1})
        with self.assertRaisesRegex(records.Failed, "it wrote no figures"):
            records.run_file(lambda path: [program], {}, 10)

    def test_the_table_and_what_is_kept(self):
        row = records.row("case", "imbrex", 2, [3.0, 1.0, 2.0], "ns") | {"tasks": 7}
        records.set_target(row, "<= 1", False)
        records.report(self.arguments, [row])
        records.report(self.arguments, [records.row("case", "other", 2, [1234.0], "ns")])
        printed = [" ".join(line.split()) for line in self.printed.getvalue().splitlines()]
        self.assertIn("case 2 imbrex 2.000 1.000 3.000 ns tasks 7; <= 1, NOT REACHED", printed)
        self.assertIn("case 2 other 1,234.0 1,234.0 1,234.0 ns", printed)
        self.arguments.json = True
        again = records.row("case", "imbrex", 2, [5.0], "ns")
        records.report(self.arguments, [again])
        self.assertIn(json.dumps(again), self.printed.getvalue().splitlines())
        kept = json.loads((self.folder / "bench.json").read_text())
        self.assertEqual([(line["system"], line["median_ns"]) for line in kept],
                         [("other", 1234.0), ("imbrex", 5.0)])

    def test_policies_that_a_runtime_lacks_are_left_out(self):
        program = self.program('echo "IMBREX_POLICY=?: valid: steal, fifo" >&2; exit 1')
        self.assertEqual(records.known_policies(["fifo", "fa"], program), ["fifo"])
        self.assertEqual(self.printed.getvalue(),
                         "bench: WARNING: this runtime has no policy fa: left out\n")

    def test_lines_are_grouped_by_case_and_system(self):
        self.assertEqual(records.by_system([("a", "x", 1), ("b", "x", 2), ("a", "y", 3),
                                            ("a", "x", 4)]),
                         {"a": {"x": [1, 4], "y": [3]}, "b": {"x": [2]}})

    def test_nothing_measured(self):
        with self.assertRaisesRegex(SystemExit, "nothing could be measured"):
            records.report(self.arguments, [])

    def test_ratios_are_those_of_one_repetition(self):
        self.assertEqual(records.ratios({0: 2, 1: 9, 2: 8}, {0: 1, 2: 2}, float), [2.0, 4.0])


if __name__ == "__main__":
    unittest.main()
