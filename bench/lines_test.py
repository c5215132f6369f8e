# SPDX-License-Identifier: BSD-3-Clause
"""Tests bench/lines: its table and records, with a program that prints known counts. With
`--built TREE` it builds the real program there, and runs a case."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LINES = pathlib.Path(__file__).resolve().parent / "lines"
BUILT = None  # the tree of --built

COUNTS = {"operations": 100, "accesses": 25000, "moved": 420, "data": 50, "places": []}


def run(build, *words):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([sys.executable, "-B", str(LINES), "--build", str(build), *words],
                          capture_output=True, text=True, check=False, env=environment)


class TableTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "bin").mkdir()
        (self.build / "CMakeCache.txt").write_text("")

    def program(self, text):
        path = self.build / "bin" / "lines_cases"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def counts(self):
        line = json.dumps({**COUNTS, "case": "CASE", "workers": 0})
        line = line.replace("CASE", "'$1'").replace('"workers": 0', '"workers": \'$2\'')
        self.program(f"echo '{line}'\n")

    def test_each_case_has_a_row_for_each_number_of_workers(self):
        self.counts()
        done = run(self.build, "--no-build", "--repetitions", "1")
        rows = [line.split() for line in done.stdout.splitlines() if "250.0" in line]
        self.assertEqual([row[:2] for row in rows],
                         [[case, workers]
                          for case in ("spawn", "chain", "stencil", "iterate", "fib",
                                       "parallel_for")
                          for workers in ("2", "8", "32")], done.stderr)
        self.assertEqual(rows[0][2:], ["250.0", "4.20", "0.50"])

    def test_records_have_moves_for_each_operation(self):
        self.counts()
        done = run(self.build, "--no-build", "--only", "fib", "--workers", "3", "--json")
        kept = json.loads((self.build / "bench.json").read_text())
        self.assertEqual(kept, [{"benchmark": "lines_fib", "system": "imbrex", "workers": 3,
                                 "accesses": 250.0, "moved": 4.2, "data": 0.5, "min_moved": 4.2,
                                 "max_moved": 4.2, "operations": 100, "repetitions": 3}])
        self.assertIn(json.dumps(kept[0]), done.stdout)

    def test_a_program_that_fails_is_named_and_the_exit_status_says_so(self):
        self.program("echo 'bench: lines: more than 64 threads' >&2; exit 3\n")
        done = run(self.build, "--no-build", "--only", "spawn", "--workers", "8")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: spawn, 8 workers: exit code 3: bench: lines: more than 64 threads",
                      done.stdout)

    def test_numbers_out_of_range_are_refused(self):
        for words in (["--workers", "0"], ["--workers", "61"], ["-n", "63"]):
            self.assertEqual(run(self.build, *words).returncode, 2, words)


class CaseTest(unittest.TestCase):
    @unittest.skipUnless("--built" in sys.argv, "for ./test --full")
    def test_a_case_is_built_and_its_symbols_are_named(self):
        done = run(BUILT, "--only", "spawn", "--workers", "2", "-n", "640", "--repetitions", "1",
                   "--by-symbol", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\nspawn +2 +[1-9][0-9.]+ +[0-9.]+ +0\.00")
        self.assertRegex(done.stdout, r"\n +[0-9.]+  [A-Za-z:~ <]+\([a-z_]+\.[ch]pp:[0-9]+\)")


if __name__ == "__main__":
    if "--built" in sys.argv:
        BUILT = sys.argv[sys.argv.index("--built") + 1]
        unittest.main(argv=[sys.argv[0], "CaseTest"])
    unittest.main()
