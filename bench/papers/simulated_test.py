# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: some cells of docs/papers/iwomp21.md are simulated again, and compared with the
stored results to the last digit. A change of the simulator or of a policy that moves them asks for
a new run of bench/papers/iwomp21. The path of the build is the first argument."""
import argparse
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import page  # noqa: E402
import runner  # noqa: E402
BUILD = pathlib.Path(sys.argv.pop(1))
ORIGIN = ("commit", "date", "on")


def is_of(line, cell):
    return all(line.get(name) == value for name, value in cell.items())


class SimulatedTest(unittest.TestCase):
    # Cells of Table 3 on 4 ranks, to which no constant was fitted, and of Figures 1 and 2.
    CELLS = ({"part": "weak", "ranks": 4, "policy": "fifo"},
             {"part": "weak", "ranks": 4, "policy": "fa"},
             {"part": "idle", "grid": "1x2", "policy": "fifo"},
             {"part": "idle", "grid": "2x1", "policy": "sa"})

    def test_the_stored_results_are_those_of_the_simulator(self):
        stored = page.stored("iwomp21")["results"]
        again = [line for line in stored if not any(is_of(line, cell) for cell in self.CELLS)]
        self.assertEqual(len(stored) - len(again), len(self.CELLS))
        program = runner.program("iwomp21")
        with tempfile.TemporaryDirectory() as folder:
            arguments = argparse.Namespace(missing=True, build=BUILD,
                                           results=pathlib.Path(folder) / "results.json")
            for part in (program.weak, program.idle):
                part(arguments, again)
        for cell in self.CELLS:
            (old,), (new,) = ([{name: line[name] for name in line if name not in ORIGIN}
                               for line in lines if is_of(line, cell)] for lines in (stored, again))
            with self.subTest(**cell):
                self.assertEqual(new, old, "bench/papers/iwomp21 simulates all points again")


if __name__ == "__main__":
    unittest.main()
