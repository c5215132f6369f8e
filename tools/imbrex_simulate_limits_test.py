# SPDX-License-Identifier: BSD-3-Clause
"""imbrex_simulate_limits_test.py IMBREX: kernels and networks of `imbrex simulate` with extreme
values, the ranges of its options, and simulations that do not fit.

Methodology: each value either ends in one line that names the cause, or gives numbers that can be
true. Python's part runs in this process, so that thousands of values take seconds.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import math
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import imbrex_errors
import imbrex_simulate
import imbrex_simulate_limits as limits

EXTREMES = ("", " ", "0", "1", "-1", "-0.0", "nan", "inf", "-inf", "1e300", "-1e300", "1e-300",
            "0.5", "1e3", "1_0", "9" * 400, "9" * 5000, str(2 ** 31), str(2 ** 32 - 1),
            str(2 ** 63), str(2 ** 64), str(10 ** 12), str(2 ** 20), "x", "\u0663", "1,1", "1;2",
            "1:1", "1x1", "=", "a=b", ",", ":", "0x10", "1s", "/dev/null", "/", "1\n2", "\\", "%s",
            "{}", "T", "MPI")
TIMES = ("", "0s", "-1s", "nan", "infs", "1e300s", "1e-300s", "1e15s", "9e99s", "s", "6", "6m",
         "6ms6", "1e999s", "1e300gflops", "1e-300gflops", "0gflops", "1e-9ns", "\u0663s",
         "9" * 400 + "s")
# Small programs, by the options that they need.
GOOD = {"cholesky": "--n 1024 --tile 256 --kernels gemm=6ms --ranks 2",
        "stencil1d": "--size 900 --ghost 10 --steps 3 --cell-ns 5 --ranks 2",
        "stencil2d": "--blocks 4 --side 8 --steps 2 --kernels block=1ms --ranks 2",
        "minife": "--n 8 --iterations 2 --blocks 2 --kernels multiply=3ms,add=1ms,dot=1ms "
                  "--ranks 2",
        "hpcg": "--n 8 --blocks 2 --iterations 1 --ranks 2 "
                "--kernels smooth=3ms,multiply=2ms,add=1ms,dot=1ms,fill=1ms",
        "exchange": "--n 64 --chunks 4 --parts 4 --kernels line=10us --ranks 2",
        "wavefront": "--rows 100 --columns 90 --outer-rows 30 --outer-columns 30 --inner-rows 10 "
                     "--inner-columns 10 --kernels tile=1ms --ranks 2",
        "pool": "--tree T1 --kernels node=300ns --ranks 2",
        "broadcast": "--bytes 100000 --rounds 2 --ranks 2"}
SECONDS = 60          # of one case, on a busy machine
MEMORY_GIB = "0.25"   # larger simulations are refused, so a case is short
NETWORK = {"latency_us": "1", "overhead_us": "0.1", "gap_us": "0.1", "gbit_per_s": "8",
           "copy_gbit_per_s": "80", "eager_bytes": "100", "sender_answers": "0",
           "node_latency_us": "1", "node_gbit_per_s": "80", "noise": "0.1"}


def load_command():
    loader = importlib.machinery.SourceFileLoader("imbrex_command", str(
        pathlib.Path(imbrex_simulate.__file__).parent / "imbrex"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Ended(Exception):
    """A case has taken too long."""


@contextlib.contextmanager
def bounded(seconds):
    def end(*unused):
        raise Ended
    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


class Extremes(unittest.TestCase):
    imbrex = ""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(os.chdir, os.getcwd())
        cls.folder = pathlib.Path(folder.name)
        os.chdir(cls.folder)
        cls.command = load_command()
        sys.argv = [cls.imbrex]

    def call(self, *arguments):
        """(exit status, standard output, standard error) of `imbrex simulate`, in this process."""
        errors = self.folder / "errors"
        kept = os.dup(2)
        output = io.StringIO()
        with open(errors, "w", encoding="utf-8") as file:
            os.dup2(file.fileno(), 2)
            try:
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(file), \
                        bounded(SECONDS):
                    status = self.command.main(["simulate", *arguments])
            except SystemExit as end:
                status = end.code
            finally:
                file.flush()
                os.dup2(kept, 2)
                os.close(kept)
        return status, output.getvalue(), errors.read_text(encoding="utf-8", errors="replace")

    def check(self, *arguments):
        """Either one line of error, or possible numbers. Returns the exit status."""
        words = [word if len(word) < 60 else f"{word[:50]}..." for word in arguments]
        with self.subTest(" ".join(map(repr, words))):
            status, output, errors = self.call(*arguments)
            self.check_end(status, errors)
            if status == 0:
                self.assertNotRegex(output, r"nan|inf|-[0-9]")
            return status
        return None

    def check_end(self, status, errors):
        self.assertNotIn("Traceback", errors)
        if status != 0:
            said = [line for line in errors.splitlines() if line.startswith("imbrex simulate: ")]
            self.assertIn(status, (1, 2), errors)
            self.assertEqual(len(said), 1, errors)
            self.assertGreater(len(said[0]), 30, errors)
            self.assertLess(len(said[0]), 1000, errors[:2000])
            self.assertNotRegex(said[0], r"bad_alloc|std::|died|failed$")

    def test_kernels_with_extreme_times(self):
        for program, words in GOOD.items():
            kernels = [*imbrex_simulate.KERNELS.get(program, ())]
            for kernel in kernels:
                for time in TIMES:
                    times = ",".join(f"{other}={time if other == kernel else '1ms'}"
                                     for other in kernels)
                    self.check(program, *words.split(), "--memory", MEMORY_GIB, "--kernels", times)
                self.assertIn(self.check(program, *words.split(), "--kernels",
                                         f"{kernel}=1ms,{kernel}=1ms"), (1, 2))

    def test_no_time_at_all_is_a_result(self):
        network = self.file("none", NETWORK | {name: "0" for name in NETWORK if "_us" in name})
        self.assertEqual(self.check("cholesky", "--n", "1024", "--kernels", "gemm=1e-9ns",
                                    "--network", network, "--creator-us", "0", "--task-us", "0"),
                         0)

    def file(self, name, values):
        path = self.folder / name
        path.write_text("".join(f"{one} = {value}\n" for one, value in values.items()),
                        encoding="utf-8")
        return str(path)

    def test_every_parameter_of_a_network_with_extreme_values(self):
        self.assertEqual(NETWORK.keys(), imbrex_simulate.PARAMETERS.keys())
        self.assertEqual(NETWORK.keys(), limits.NETWORK.keys())
        for program in ("cholesky", "broadcast", "pool"):
            arguments = [program, *GOOD[program].split(), "--per-node", "1"]
            for name in NETWORK:
                for value in (*EXTREMES, *map(str, limits.NETWORK[name])):
                    network = self.file("one", NETWORK | {name: value.replace("\n", " ")})
                    self.check(*arguments, "--network", network)
                twice = self.file("twice", NETWORK)
                with open(twice, "a", encoding="utf-8") as file:
                    file.write(f"{name} = {NETWORK[name]}\n")
                self.assertEqual(self.check(*arguments, "--network", twice), 1)

    def test_both_ends_of_each_range_are_accepted(self):
        for name, (least, most) in limits.WHOLE.items():
            for value in (least, most):
                self.assertEqual(limits.whole(str(value), name), value)
            for value in (least - 1, most + 1):
                with self.assertRaisesRegex(ValueError, "valid: "):
                    limits.whole(str(value), name)
        for name, (least, most) in limits.NUMBERS.items():
            for value in (least, most):
                self.assertEqual(limits.number(str(value), name), value)
            for value in (least - 1, 1.1 * most, math.nan):
                with self.assertRaisesRegex(ValueError, "valid: "):
                    limits.number(str(value), name)

    def test_a_simulation_that_does_not_fit_is_refused_with_its_need(self):
        for text, *arguments in (
                ("for 1,000,000 ranks", "stencil1d", "--size", "9000000", "--ghost", "1",
                 "--cell-ns", "1", "--steps", "1", "--ranks", "1000000"),
                ("for 1,000,000 ranks", "broadcast", "--bytes", "8", "--ranks", "1000000"),
                ("for 2 ranks", "cholesky", "--n", "100000", "--kernels", "gemm=1ms", "--ranks",
                 "2"),
                ("hours", "cholesky", "--n", "1000000000", "--kernels", "gemm=1ms")):
            status, _, errors = self.call(*arguments, "--memory", "0.5")
            self.assertEqual(status, 1)
            self.assertIn(text, errors)
            self.assertRegex(errors, "GiB.*reduce --")
            self.check_end(status, errors)

    def test_a_long_simulation_is_announced_with_its_time(self):
        for tasks, text in ((10 ** 7, ""), (179 * 10 ** 6, "up to 10 minutes"),
                            (9 * 10 ** 9, "up to 8.3 hours")):
            said = limits.check(limits.Need(tasks, 1000, 2 ** 20, "--n"), 1, None)
            self.assertTrue(said.endswith(text), said)
            self.assertEqual("minutes" in said or "hours" in said, text != "", said)

    def test_a_message_shows_the_start_of_a_long_word(self):
        long = "x" * 5000
        for words in (["--policy", long], ["--policy", f"fifo,{long}"], ["--network", long],
                      ["--kernels", long], ["--kernels", f"{long}=1s"],
                      ["--kernels", f"gemm={long}"], ["--sweep", long],
                      ["--sweep", f"tile={long}"], ["--points", long],
                      ["--points", f"n={long}"], ["--grid", long], ["--slow", long],
                      ["--progress", long], ["--ranks", long], [f"--{long}"], [long]):
            arguments = ["cholesky", "--n", "1024", *words]
            if "--kernels" not in words:
                arguments += ["--kernels", "gemm=1ms"]
            self.assertIn(self.check(*arguments), (1, 2))
        self.assertIn(self.check(long), (1, 2))

    def words_of(self, program):
        """The simulator and the settings with which the command starts it."""
        found = []

        def keep(path, settings):
            found.append((path, dict(word.split("=", 1) for word in settings)))
            raise imbrex_errors.CommandError("nothing is simulated")
        with unittest.mock.patch.object(imbrex_simulate, "simulate", keep):
            self.call(program, *GOOD[program].split())
        return found[0]

    def start(self, path, settings, memory=resource.RLIM_INFINITY):
        """The simulator itself, with at most so many bytes of memory."""
        words = [f"{name}={value}" for name, value in settings.items()]
        return subprocess.run([path, *words], capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                                    (memory, memory)))

    def test_the_simulator_itself_refuses_long_words_in_one_short_line(self):
        path, settings = self.words_of("cholesky")
        long = "x" * 5000
        for name in (*settings, long):
            with self.subTest(name[:50]):
                done = self.start(path, settings | {name: long})
                self.assertEqual(done.returncode, 1)
                self.check_end(1, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr[:500])

    def test_the_simulator_itself_ends_in_one_line_wherever_memory_runs_out(self):
        """Methodology: the limit rises from that of an empty simulation to that of the whole one,
        and so memory runs out at other places, also in code that is noexcept."""
        path, settings = self.words_of("cholesky")
        step = 2 ** 22
        for policy in ("default", "fa"):
            memory = step
            while self.start(path, {"policy": "none"}, memory).returncode != 1:
                memory += step
            refused, status = 0, 1
            while status != 0:
                done = self.start(path, settings | {"n": "16384", "policy": policy}, memory)
                status = done.returncode
                with self.subTest(policy, memory=memory):
                    self.assertIn(status, (0, 1), done.stderr)
                    self.check_end(status, done.stderr)
                    self.assertLessEqual(len(done.stderr.splitlines()), 1, done.stderr)
                refused += "there is no memory" in done.stderr
                memory += step
            self.assertGreater(refused, 0)


if __name__ == "__main__":
    Extremes.imbrex = sys.argv.pop()
    os.environ |= {name: "1" for name in ("OMPI_ALLOW_RUN_AS_ROOT",
                                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")}
    unittest.main()
