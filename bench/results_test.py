# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: the page of results from records that are made here: losses, targets that are
missed, peers that run tasks at once; and docs/user/results.md from its stored records."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import results_page  # noqa: E402 (found by the line before)


def record(benchmark, system, median, **more):
    return {"benchmark": benchmark, "system": system, "workers": 2, "median_ns": median,
            "min_ns": 0.9 * median, "max_ns": 1.2 * median, "repetitions": 3, **more}


def results(*lines, script="compare"):
    return results_page.Results({"scripts": {script: {
        "date": "2026-01-02", "commit": "12345678", "on": "a machine", "records": list(lines)}}})


class ResultsTest(unittest.TestCase):
    def test_each_record_has_its_script(self):
        for benchmark, script in {"spawn": "compare", "spawn_window_off": "compare",
                                  "pingpong": "compare", "pingpong_busy": "compare",
                                  "pingpong_4096": "compare_mpi", "waiting_cpu": "compare_mpi",
                                  "message_latency_8": "compare_mpi", "omp_task": "compare",
                                  "outstanding_16": "compare", "outstanding_tasks_16": "compare",
                                  "sync_strict_2x1": "syncbench", "lines_fib": "lines",
                                  "instructions_launch": "instructions",
                                  "stencil1d_1048576_x0_100us": "",
                                  "policies_lu_1gbit": ""}.items():
            self.assertEqual(results_page.script_of({"benchmark": benchmark}), script, benchmark)

    def test_losses_come_first_and_peers_that_run_at_once_do_not_count(self):
        page = results(record("chain", "imbrex", 100.0), record("chain", "oneTBB 1", 60.0),
                       record("fib", "imbrex", 30.0), record("fib", "oneTBB 1", 10.0),
                       record("spawn", "imbrex", 50.0),
                       record("spawn", "libgomp 12", 20.0, inline_share=0.9),
                       record("spawn", "oneTBB 1", 80.0))
        self.assertEqual([row[0] for row in page.losses()], ["`fib`", "`chain`"])
        self.assertEqual(page.losses()[0][2:], ("30.0 ns", "oneTBB 1 10.0 ns", "3.00"))
        text = page.text()
        self.assertLess(text.index("## Where imbrex is slower"), text.index("## Tasks"))
        self.assertIn("oneTBB 1 80.0 ns (1.60); libgomp 12 20.0 ns (0.40) *", text)
        self.assertIn("-10 to +20 %", text)

    def test_a_target_that_is_missed_is_named(self):
        page = results(record("stencil", "imbrex", 213.0, target="<= 200", reached=False),
                       record("chain", "imbrex", 90.0, target="<= 150", reached=True))
        self.assertEqual(page.missed(), [("`stencil`", 2, "<= 200", "213.0 ns")])

    def test_other_ways_to_run_imbrex_are_no_peers(self):
        page = results(record("sync_strict_2x1", "imbrex", 900.0),
                       record("sync_strict_2x1", "MPI+OpenMP by imbrex", 500.0),
                       record("sync_strict_2x1", "MPI", 950.0), script="syncbench")
        self.assertEqual(page.losses(), [])
        self.assertEqual(page.peers(), "MPI")

    def test_the_page_is_that_of_its_stored_records(self):
        self.assertEqual(results_page.stored_page().text(), results_page.PAGE.read_text(),
                         "run bench/results --page")


def main():
    """Without the modules that make pages, the tests are left out; ctest sees that by 77."""
    try:
        results_page.page.library("jinja2")
    except SystemExit as error:
        print(f"left out: {error}")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
