# SPDX-License-Identifier: BSD-3-Clause
"""commands_test.py IMBREX TRACE [D3]: each subcommand of an installed `imbrex` does its work there.

TRACE is what a program with the installed library has recorded; D3, if it was found, must have been
installed. A subcommand that this knows nothing of fails.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest


class Installed(unittest.TestCase):
    imbrex = trace = d3 = ""

    def run_command(self, *arguments, **variables):
        # No place of the source tree, and no d3 of the system, helps.
        said = subprocess.run([self.imbrex, *map(str, arguments)], capture_output=True, text=True,
                              check=False, cwd=self.folder.name,
                              env={"PATH": "/usr/local/bin:/usr/bin:/bin", **variables})
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        return said.stdout

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.output = pathlib.Path(self.folder.name) / "output"

    def test_every_command_has_a_test(self):
        text = self.run_command("--help")
        commands = set(re.findall(r"^    ([a-z]+)\b", text, re.MULTILINE))
        self.assertIn("report", commands)
        tested = {name[5:] for name in dir(self) if name.startswith("test_")}
        self.assertEqual(commands - tested, set())

    def test_run(self):
        self.assertIn("libgomp.so.1", self.run_command("run", "--", "printenv", "LD_PRELOAD"))

    def test_config(self):
        prefix = pathlib.Path(self.imbrex).parent.parent
        libs = self.run_command("config", "--libs", "--no-mpi").split()
        self.assertIn(f"-L{prefix / 'lib'}", libs)
        self.assertIn("-limbrex", libs)
        self.assertEqual(self.run_command("config", "--prefix").strip(), str(prefix))

    def test_simulate(self):
        self.run_command("simulate", "cholesky", "--n", 4096, "--ranks", 4, "--workers", 2,
                         "--kernels", "gemm=6ms", "--policy", "fifo,sa", "--json", self.output)
        self.assertEqual(self.output.read_text().count('"tasks": '), 2)
        self.assertIn("edr", self.run_command("simulate", "--list"))

    @unittest.skipUnless(shutil.which("mpirun") and shutil.which("mpicc"), "there is no MPI")
    def test_calibrate(self):
        self.run_command("calibrate", "--output", self.output, "--", "mpirun", "-n", 2,
                         OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.assertIn("latency_us = ", self.output.read_text())
        self.run_command("simulate", "cholesky", "--n", 4096, "--ranks", 4, "--kernels",
                         "gemm=6ms", "--network", self.output)

    def test_doctor(self):
        """The programs that it starts are installed, and find the installed libraries."""
        text = self.run_command("doctor", "--seconds", 100, OMPI_ALLOW_RUN_AS_ROOT="1",
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        prefix = pathlib.Path(self.imbrex).parent.parent
        self.assertRegex(text, rf"(?m)^ok +versions: +{re.escape(str(prefix))}/")
        if shutil.which("mpirun") and shutil.which("mpicc"):
            self.assertRegex(text, "(?m)^ok +thread level: ")

    HANGS = """
        #include <imbrex/imbrex.hpp>
        #include <thread>
        #include <unistd.h>
        int main() {
          imbrex::Promise<void> never;
          std::thread another(pause);
          imbrex::task("waits").launch([&] { never.future().get(); });
          imbrex::taskwait();
        }
        """

    @contextlib.contextmanager
    def hanging(self):
        """The folder of the flight recorder of a process that hangs, and is killed at the end."""
        self.output.mkdir()
        source, program = self.output / "hangs.cpp", self.output / "hangs"
        source.write_text(textwrap.dedent(self.HANGS))
        compiler = pathlib.Path(self.imbrex).parent / "imbrex-c++"
        subprocess.run([compiler, "--no-mpi", source, "-o", program], check=True)
        folder = self.output / "flight"
        environment = {**os.environ, "IMBREX_FLIGHT_DIR": str(folder), "IMBREX_WORKERS": "2"}
        with subprocess.Popen([program], env=environment) as hangs:
            try:
                end = time.monotonic() + 30
                while not self.is_seen(folder) and time.monotonic() < end:
                    time.sleep(0.2)
                yield folder
            finally:
                hangs.kill()

    def is_seen(self, folder):
        return list(folder.glob("*.flight")) and "waits" in self.run_command("explain", folder)

    def test_explain(self):
        """While a program hangs, and after it was killed."""
        waits = r'(?m)^  future.*in "waits" \(hangs.cpp:8\)'
        with self.hanging() as folder:
            self.assertRegex(self.run_command("explain", folder), waits)
        text = self.run_command("explain", "--page", "page.html", folder)
        self.assertRegex(text, waits)
        self.assertIn("its process is gone", text)
        self.assertIn("waits", (pathlib.Path(self.folder.name) / "page.html").read_text())
        self.assertIn("1 file copied", self.run_command("explain", "--collect", "all", folder))
        self.assertRegex(self.run_command("explain", "all"), waits)

    def test_top(self):
        with self.hanging() as folder:
            self.assertIn("2 waits", self.run_command("top", "--looks", 1, folder))

    def test_timeline(self):
        self.run_command("timeline", self.trace, "-o", self.output)
        self.assertIn("<svg", self.output.read_text())

    def test_summary(self):
        self.assertIn("answer", self.run_command("summary", self.trace))

    def test_report(self):
        self.output.mkdir()
        text = self.run_command("report", self.trace, "-o", self.output)
        self.assertIn("Critical path", text)
        if self.d3:
            page = (self.output / "report.html").read_text()
            self.assertIn(pathlib.Path(self.d3).read_text(encoding="utf-8")[:100], page)
            share = pathlib.Path(self.imbrex).resolve().parent
            self.assertTrue((share / "imbrex_trace" / "d3.min.js").is_file())


if __name__ == "__main__":
    Installed.imbrex, Installed.trace, *rest = sys.argv[1:]
    Installed.d3 = rest[0] if rest else ""
    unittest.main(argv=sys.argv[:1])
