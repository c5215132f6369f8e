# SPDX-License-Identifier: BSD-3-Clause
"""owners_test.py IMBREX PROGRAM MPIRUN...: a program on data with owners, run and simulated.

MPIRUN ends before the number of ranks. In both the same tasks, versions and bytes must be counted
on each rank. Copies travel as stars, since in a tree the time decides who passes them on.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

COUNTED = ("tasks", "versions_sent", "broadcasts", "copies_from_root", "bytes_sent",
           "bytes_received")
KERNELS = "fill=1ms,largest=200us,look=300us,stretch=2ms,make=100us,take=100us"


class Owners(unittest.TestCase):
    imbrex = program = ""
    mpirun = []

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "results.json"

    def simulate(self, *words, arguments=(), kernels=KERNELS):
        command = [self.imbrex, "simulate", "--kernels", kernels, "--network", "netlab-1gbit",
                   "--json", self.json, *words, "--", self.program, *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                              timeout=120)

    def records(self, *words, arguments=(), kernels=KERNELS):
        done = self.simulate(*words, arguments=arguments, kernels=kernels)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.json.read_text(encoding="utf-8"))

    def measured(self, ranks, *arguments):
        """The counters of each rank of a run."""
        done = subprocess.run([*self.mpirun, str(ranks), self.program, *arguments],
                              capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, "IMBREX_TREES": "star"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [dict((name, int(value)) for name, value in
                     (word.split("=") for word in line.split()))
                for line in done.stdout.splitlines() if line.startswith("tasks=")]

    def counted(self, record):
        return [{name: rank[name] for name in COUNTED} for rank in record["data"]]

    def test_a_simulation_counts_on_each_rank_what_a_run_counts(self):
        for ranks in (2, 4):
            for arguments, kernels in (([], KERNELS), (["random"], "task=1us,reduce=2us"),
                                       (["loop"], KERNELS.replace("fill=1ms,", ""))):
                record, = self.records("--ranks", ranks, "--tree", "star", arguments=arguments,
                                       kernels=kernels)
                self.assertEqual(self.counted(record), self.measured(ranks, *arguments))

    def test_every_policy_and_tree_moves_the_same_data(self):
        policies = "default,fifo,priority,steal,ma1,ma2,ma3,sa,fa,ga"
        records = self.records("--ranks", 7, "--per-node", 2, "--workers", 3, "--policy", policies,
                               "--sweep", "tree=star,chain,binomial,auto")
        self.assertEqual(len(records), 40)
        for record in records:
            for name in ("tasks", "versions_sent", "broadcasts", "bytes_received"):
                self.assertEqual([rank[name] for rank in record["data"]],
                                 [rank[name] for rank in records[0]["data"]], name)
            self.assertGreater(record["seconds"], 0.015)  # of all kernels in a row

    def test_under_fa_and_ga_the_recipient_whose_work_leads_to_a_send_goes_first(self):
        """Rank 1 takes the result of rank 3. A hop of the chain takes 1.8 ms. The data reach rank 3
        in the third hop, or in the first one and rank 1 in the second."""
        records = self.records("--ranks", 4, "--policy", "default,sa,fa,ga", "--tree", "chain",
                               arguments=["lead"], kernels="make=1ms,look=1us,take=20ms")
        default, sends, forwards, graph = (record["seconds"] for record in records)
        self.assertAlmostEqual(default, sends, places=5)
        self.assertAlmostEqual(forwards, graph, places=5)
        self.assertAlmostEqual(default - forwards, 0.0018, places=4)
        counted = self.measured(4, "lead")
        for record in self.records("--ranks", 4, "--policy", "default,fa", "--tree", "star",
                                   arguments=["lead"], kernels="make=1ms,look=1us,take=20ms"):
            self.assertEqual(self.counted(record), counted)

    def test_one_input_gives_one_output(self):
        first, second = (self.records("--ranks", 5, "--policy", "fa") for _ in range(2))
        self.assertEqual(first, second)

    def test_one_rank_takes_the_time_of_its_tasks(self):
        record, = self.records("--ranks", 1, "--creator-us", 0, "--task-us", 0)
        # 3 rounds: fill, largest, 2 look, 2 stretch, make, take
        self.assertAlmostEqual(record["seconds"], 3 * 6.0e-3, places=4)
        self.assertEqual(record["messages"], 0)

    def test_a_program_that_depends_on_values_or_sends_more_is_refused(self):
        for argument, text in (("looks", "is inserted after view() of datum"),
                               ("throws", "ended with code 1. Its last lines:\n  the program has"),
                               ("pool", 'work pool "work pool" cannot be simulated')):
            done = self.simulate("--ranks", 2, arguments=[argument])
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
            self.assertFalse(self.json.exists())

    def test_a_loop_is_refused_as_a_run_refuses_it(self):
        for argument, text in (("finish", 'finish() of space "test" in the body of iterate()'),
                               ("datum", 'a new datum of space "test" in the body of iterate()'),
                               ("move", 'move() leaves datum 2 of space "test" with the owner rank '
                                        '0 behind the period, which began with the owner rank 1')):
            arguments = ["loop " + argument]
            done = self.simulate("--ranks", 2, arguments=arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
            self.assertFalse(self.json.exists())
            run = subprocess.run([*self.mpirun, "2", self.program, *arguments],
                                 capture_output=True, text=True, check=False, timeout=120)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(text, run.stdout + run.stderr)

    def test_a_value_that_is_looked_at_is_named(self):
        done = self.simulate("--ranks", 2, arguments=["stops"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('looks at the value of datum 0 of space "test"', done.stderr)

    def test_a_program_that_fails_after_its_insertions_is_simulated(self):
        done = self.simulate("--ranks", 2, arguments=["code"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ended with code 3, after all its insertions", done.stderr)
        self.assertTrue(self.json.exists())

    def test_mistakes_are_named(self):
        done = self.simulate("--ranks", 2, kernels="fill=1ms")
        self.assertIn("missing: largest, look, stretch, make, take", done.stderr)
        done = self.simulate("--ranks", 2, kernels=KERNELS + ",fold=1ms")
        self.assertIn("there is no kernel fold", done.stderr)
        done = self.simulate("--ranks", 2, "--steps", 4)
        self.assertIn("--steps is not an option of ", done.stderr)
        for program, text in (("/bin/true", "has inserted no tasks on data with owners"),
                              ("/bin/false", "ended with code 1"),
                              ("/no/program", "there is no program /no/program")):
            done = subprocess.run([self.imbrex, "simulate", "--", program], capture_output=True,
                                  text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)

    def test_a_damaged_file_is_refused_with_its_place(self):
        path = self.folder / "insertions"
        subprocess.run([self.program], check=True, stdout=subprocess.DEVNULL, timeout=60,
                       env={**os.environ, "IMBREX_SIMULATE_RANKS": "2",
                            "IMBREX_SIMULATE_FILE": str(path)})
        whole = path.read_bytes()
        simulator = self.simulator()
        for content, text in ((b"", "ends in the middle"), (b"ELF", "is no file of insertions"),
                              (whole[:len(whole) // 2], "ends in the middle"),
                              (whole[:20] + b"\x7f" + whole[21:], "there is no operation 127")):
            path.write_bytes(content)
            done = subprocess.run([*simulator, f"file={path}"], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)

    def simulator(self):
        """The program behind the command, without the file."""
        names = ("fill", "largest", "look", "stretch", "make", "take")
        settings = {"program": "owners", "ranks": 2, "per_node": 1, "lend": 0, "workers": 1,
                    "policy": "fifo",
                    "tasks_ahead": 512, "creator_ns": 200, "task_ns": 200, "progress": "auto",
                    "poll_gap_ns": 2000000,
                    "seed": 1, "slow_rank": -1, "slowness": 1, "shows_progress": 0,
                    "latency_ns": 1, "overhead_ns": 1, "gap_ns": 1, "ns_per_byte": 1,
                    "copy_ns_per_byte": 1, "eager_bytes": 1, "sender_answers": 0,
                    "node_latency_ns": 1, "node_ns_per_byte": 1, "noise": 0, "elsewhere_ns": 50,
                    "combine_ns": 0, "tree": "auto", "kernels": len(names)}
        settings |= {f"name.{number}": name for number, name in enumerate(names)}
        settings |= {f"kernel.{number}": 1000 for number in range(len(names))}
        found = pathlib.Path(self.imbrex).with_name("imbrex-simulate")
        return [str(found), *(f"{name}={value}" for name, value in settings.items())]


if __name__ == "__main__":
    Owners.imbrex, Owners.program, *Owners.mpirun = sys.argv[1:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
