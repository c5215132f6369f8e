#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests `imbrex run` with launchers and programs that only print what they are given. Real ones are
tests of tests/omp/."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

COMMAND = pathlib.Path(__file__).resolve().parent / "imbrex"
SHOW = 'echo "$(basename "$0") $*"; env | grep -E "^(LD_PRELOAD|OMP_|IMBREX_)" | sort'


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.libraries = self.root / "lib"
        (self.libraries / "omp").mkdir(parents=True)
        self.omp = self.libraries / "omp" / "libgomp.so.1"
        self.mpi = self.libraries / "libimbrex_mpi_openmpi.so"
        self.llvm = self.omp.with_name("libomp.so.5")
        for library in (self.omp, self.llvm, self.omp.with_name("libiomp5.so"), self.mpi):
            # Empty libraries: the loader takes them.
            subprocess.run(["cc", "-shared", "-o", library, "-x", "c", "/dev/null"], check=True)
        self.launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        self.launcher("mpiexec.hydra", "HYDRA build details: Version: 4.0")
        self.launcher("srun", "slurm 23.02")
        self.script("program", SHOW)

    def script(self, name, text):
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def launcher(self, name, version):
        self.script(name, f'if [ "$1" = --version ]; then echo "{version}"; exit; fi\n{SHOW}')

    def linked_with(self, name, soname):
        library = self.root / soname
        subprocess.run(["cc", "-shared", f"-Wl,-soname,{soname}", "-o", library, "-x", "c",
                        "/dev/null"], check=True)
        subprocess.run(["cc", "-o", self.root / name, "-x", "c", "-", "-x", "none",
                        "-Wl,--no-as-needed", library, f"-Wl,-rpath,{self.root}"],
                       input=b"int main(void){return 0;}", check=True)

    def run_it(self, *arguments, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("OMP_", "GOMP_", "IMBREX_", "LD_"))}
        environment.update(variables, PATH=f"{self.root}:{environment['PATH']}")
        return subprocess.run([sys.executable, COMMAND, "run", "--libraries", self.libraries,
                               *arguments], capture_output=True, text=True, check=False,
                              env=environment)

    def lines(self, *arguments, **variables):
        result = self.run_it(*arguments, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    def refuses(self, text, *arguments):
        result = self.run_it(*arguments)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(text, result.stderr)

    def test_a_folder_that_ld_preload_cannot_name_is_refused(self):
        self.libraries = self.libraries.rename(self.root / "a lib")
        self.refuses(f"LD_PRELOAD cannot name {self.libraries}/omp/libgomp.so.1: the dynamic",
                     "--", "program")

    def test_a_program_gets_the_variables(self):
        self.assertEqual(
            self.lines("--threads", "3", "--policy", "fifo", "--trace", "/x/y", "--summary", "--",
                       "program", "-n", "5"),
            ["program -n 5", "IMBREX_POLICY=fifo", "IMBREX_SUMMARY=1", "IMBREX_TRACE=/x/y",
             f"LD_PRELOAD={self.omp}", "OMP_NUM_THREADS=3"])

    def test_every_policy_is_taken(self):
        for policy in ("default", "ma1", "ga", "seeded:42"):
            self.assertIn(f"IMBREX_POLICY={policy}", self.lines("--policy", policy, "program"))

    def test_options_of_the_program_are_its_own(self):
        self.assertEqual(self.lines("program", "--polcy", "fifo")[0], "program --polcy fifo")

    def test_earlier_preloads_stay_behind(self):
        other = self.root / "lib" / "other.so"
        other.write_bytes(self.omp.read_bytes())
        self.assertIn(f"LD_PRELOAD={self.omp}:{other}",
                      self.lines("program", LD_PRELOAD=str(other)))

    def test_open_mpi_is_asked_for_each_program(self):
        given = (f"-x LD_PRELOAD={self.omp}:{self.mpi} -x OMP_NUM_THREADS=2 "
                 "-x IMBREX_TELL_PROCESS=1")
        self.assertEqual(self.lines("--threads", "2", "mpirun", "-n", "1", "program", ":", "-n",
                                    "2", "program"),
                         [f"mpirun {given} -n 1 program : {given} -n 2 program"])

    def given(self, value, *arguments, **variables):
        """The ranks of the command get this value of LD_PRELOAD, and it is all that they get."""
        words = " ".join(self.lines("--", *arguments, **variables)[0].split()[1:])
        found = re.findall(r"LD_PRELOAD[= ](\S+)", words)
        self.assertEqual(found, value if isinstance(value, list) else [value], words)

    def test_a_tool_that_a_launcher_is_told_of_stays_behind(self):
        """-x and -genv of the user would replace those of this command."""
        ours = f"{self.omp}:{self.mpi}"
        self.given(f"{ours}:/t.so", "mpirun", "-x", "LD_PRELOAD=/t.so", "-n", "2", "program")
        self.given(f"{ours}:/t.so:/u.so", "mpirun", "-n", "2", "--x", "LD_PRELOAD=/t.so /u.so",
                   "program")
        self.given(ours, "mpirun", "-x", "LD_PRELOAD", "program")
        self.given([f"{ours}:/t.so", ours, f"{ours}:/u.so"], "mpirun", "-x", "LD_PRELOAD=/t.so",
                   "program", ":", "-n", "1", "program", ":", "-x", "LD_PRELOAD=/u.so", "program")
        self.given([ours, "/t.so"], "mpirun", "program", "-x", "LD_PRELOAD=/t.so")  # its argument
        hosts = self.root / "hosts"
        self.script("hosts", "one slots=2")
        self.given(f"{ours}:/t.so", "mpirun", "--hostfile", str(hosts), "-x", "LD_PRELOAD=/t.so",
                   "program")
        other = self.root / "tool.so"
        other.write_bytes(self.omp.read_bytes())
        self.given(f"{ours}:{other}", "mpirun", "-x", "LD_PRELOAD", "program",
                   LD_PRELOAD=str(other))
        self.mpi.rename(self.libraries / "libimbrex_mpi_mpich.so")
        ours = f"{self.omp}:{self.libraries}/libimbrex_mpi_mpich.so"
        self.script("t.so", "")  # a library is executable, too
        tool = str(self.root / "t.so")
        for words in (["-genv", "LD_PRELOAD", tool], ["-genv", f"LD_PRELOAD={tool}"]):
            self.given(f"{ours}:{tool}", "mpiexec.hydra", *words, "-n", "1", "program")
        self.given([ours, f"{ours}:{tool}"], "mpiexec.hydra", "env", f"LD_PRELOAD={tool}",
                   "program")
        self.given([ours, f"{ours}:{tool}", f"{ours}:/u.so"], "mpiexec.hydra", "-n", "1", "-env",
                   "LD_PRELOAD", tool, "program", ":", "-env", "LD_PRELOAD=/u.so", "program")

    def test_a_tool_comes_in_front_of_a_library_of_imbrex_that_is_named(self):
        for name in ("libimbrex_mpi.so", "libimbrex_mpi_openmpi.so.0", "libimbrex_preload.so"):
            self.given(f"{self.omp}:/t.so:/lib/{name}", "mpirun", "-x",
                       f"LD_PRELOAD=/t.so:/lib/{name}", "program")
        self.given(f"{self.mpi}:/t.so:{self.omp}", "mpirun", "-x",
                   f"LD_PRELOAD=/t.so:{self.omp}", "program")

    def test_a_tool_of_env_stays_behind(self):
        ours = f"{self.omp}:{self.mpi}"
        self.given([ours, f"{ours}:/t.so"], "mpirun", "-n", "2", "env", "-i", "A=1",
                   "LD_PRELOAD=/t.so", "program")
        self.assertIn(f"LD_PRELOAD={self.omp}:{self.omp.with_name('u.so')}",
                      self.lines("--no-mpi", "env", f"LD_PRELOAD={self.omp.with_name('u.so')}",
                                 "program"))

    def test_srun_gets_one_export(self):
        """The last --export counts, so that of the user would replace that of this command."""
        ours = str(self.omp)
        for words, export in (
                (["--export=ALL,LD_PRELOAD=/t.so"], f"ALL,LD_PRELOAD={ours}:/t.so"),
                (["-n", "2", "--export", "ALL,A=1"], f"ALL,A=1,LD_PRELOAD={ours}"),
                (["--export=NONE"], f"OMP_NUM_THREADS,LD_PRELOAD={ours}"),
                (["--export=A,OMP_NUM_THREADS=7,LD_PRELOAD=/t.so"],
                 f"A,OMP_NUM_THREADS=7,LD_PRELOAD={ours}:/t.so")):
            first = self.lines("--no-mpi", "--threads", "2", "srun", *words, "program")[0]
            self.assertEqual(re.findall(r"--export[= ](\S+)", first), [export], first)
        self.assertIn(f"srun --export=ALL,LD_PRELOAD={ours} program : "
                      f"--export=ALL,LD_PRELOAD={ours}:/t.so program",
                      self.lines("--no-mpi", "srun", "program", ":",
                                 "--export=ALL,LD_PRELOAD=/t.so", "program")[0])

    def test_options_of_the_environment_are_handed_on(self):
        first, *rest = self.lines("mpirun", "program", IMBREX_STALL_S="5", OMP_PLACES="cores")
        self.assertIn("-x IMBREX_STALL_S=5", first)
        self.assertIn("-x OMP_PLACES=cores", first)
        self.assertEqual(rest, ["IMBREX_STALL_S=5", "OMP_PLACES=cores"])

    def test_hydra_and_slurm_have_ways_of_their_own(self):
        self.assertEqual(self.lines("--no-mpi", "mpiexec.hydra", "-n", "2", "program"),
                         [f"mpiexec.hydra -genv LD_PRELOAD {self.omp} -genv "
                          "IMBREX_TELL_PROCESS 1 -n 2 program"])
        self.assertEqual(self.lines("--no-mpi", "--threads", "4", "srun", "-n", "2", "program"),
                         [f"srun --export=ALL,LD_PRELOAD={self.omp} -n 2 program",
                          "OMP_NUM_THREADS=4"])

    def test_the_library_fits_the_programs_mpi(self):
        self.linked_with("ours", "libmpi.so.40")
        self.assertIn(f"{self.omp}:{self.mpi}", self.lines("mpirun", "ours")[0])
        self.linked_with("theirs", "libmpi.so.12")
        self.refuses("is linked with MPICH, and mpirun is of Open MPI", "mpirun", "theirs")
        self.refuses("has no libimbrex_mpi_mpich.so, which MPICH needs", "theirs")
        self.refuses("(there is: libimbrex_mpi_openmpi.so)", "mpiexec.hydra", "theirs")

    def dies(self, launcher, version, says, code):
        """Runs `imbrex run` with a launcher that prints `says` and ends with `code`."""
        self.script(launcher, f'if [ "$1" = --version ]; then echo "{version}"; exit; fi\n'
                    f"cat <<'TEXT' >&2\n{says}\nTEXT\necho results\nexit {code}")
        result = self.run_it("--no-mpi", launcher, "program")
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "results\n")
        return result.stderr

    def test_the_rank_that_dies_is_named(self):
        """The texts are those of Open MPI 4.1 and 5.0."""
        open_mpi = "mpirun (Open MPI) 4.1.4"
        self.assertIn("imbrex run: rank 1 was the first to end: by signal 9 (SIGKILL)", self.dies(
            "mpirun", open_mpi, "mpirun noticed that process rank 1 with PID 0 on node here exited "
            "on signal 9 (Killed).", 137))
        self.assertIn("imbrex run: rank 2 was the first to end: with exit code 3", self.dies(
            "mpirun", open_mpi, "mpirun detected that one or more processes exited with non-zero "
            "status, thus causing\nthe job to be terminated. The first process to do so was:\n\n"
            "  Process name: [[54016,1],2]\n  Exit code:    3", 3))
        self.assertIn("imbrex run: rank 12 was the first to end: with exit code 3", self.dies(
            "mpirun", "mpirun (Open MPI) 5.0.11", "   Process name: [prterun-here-17@1,12]\n"
            "   Exit code:    3", 3))

    def test_the_rank_that_aborts_is_named(self):
        """By what the launcher says; where that is lost, by what the rank has told. Open MPI 4.1
        and 5.0."""
        open_mpi, told = "mpirun (Open MPI) 4.1.4", "imbrex run: rank 1 was the first to end: "
        self.assertIn(told + "by MPI_Abort with code 5", self.dies(
            "mpirun", open_mpi, "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
            "with errorcode 5.", 5))
        self.assertIn(told + "by MPI_Abort with code 5", self.dies(
            "mpirun", open_mpi, "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
            "  Proc: [[6496,1],1]\n  Errorcode: 5\n\nprterun has exited due to process rank 1 "
            'with PID 0 on node vm calling\n"abort". This may', 5))
        lost = "ORTE_ERROR_LOG: Data unpack had inadequate space"
        for tag in ("", "[1,1]<stderr>:"):
            said = self.dies("mpirun", open_mpi, f"{tag}imbrex: rank 1 is process 77 on here\n"
                             f"{lost}\n{tag}imbrex: rank 1 calls MPI_Abort with code 5", 5)
            self.assertEqual(said, f"{lost}\n{told}by MPI_Abort with code 5\n")
        self.assertIn(told + "with exit code 6", self.dies(
            "mpirun", open_mpi, "imbrex: rank 1 ends with exit code 6", 6))
        self.assertIn(told + "without MPI_Finalize", self.dies(
            "mpirun", open_mpi, "prterun has exited due to process rank 1 with PID 7 on node vm "
            "exiting\nimproperly. There are", 1))
        self.assertIn(told + "by MPI_Abort with code 5", self.dies(
            "mpiexec.hydra", "HYDRA build details", "Abort(5) on node 1 (rank 1 in comm 0): "
            "application called MPI_Abort(MPI_COMM_WORLD, 5) - process 1\n"
            "[mpiexec@here] Exit codes: [here] 0,1280", 5))

    def test_programs_without_openmp_are_told(self):
        self.linked_with("plain", "libplain.so")
        text = self.run_it("plain").stderr
        self.assertRegex(text, "^imbrex run: warning: .*/plain is linked with neither an OpenMP")
        self.assertIn("so 4 threads of OpenMP are for nothing",
                      self.run_it("--threads", "4", "env", self.root / "plain").stderr)
        self.script("contains", "")
        subprocess.run(["cc", "-o", self.root / "contains", "-x", "c", "-"], check=True,
                       input=b"const char *text = \"__KMP_REGISTERED_LIB_\";\n"
                             b"int main(void) { return text[0] == 0; }")
        self.assertIn("contains libomp.a", self.run_it("contains").stderr)
        self.linked_with("gcc", "libgomp.so.1")
        self.linked_with("mpi", "libmpi.so.40")
        for program in ("gcc", "mpi", "program"):
            self.assertEqual(self.run_it(program).stderr, "", program)
        self.assertEqual(self.run_it("--threads", "4", "gcc").stderr, "")

    def test_the_faces_are_those_that_the_program_needs(self):
        intel = self.omp.with_name("libiomp5.so")
        for soname, faces in (("libgomp.so.1", [self.omp]), ("libomp.so.5", [self.omp, self.llvm]),
                              ("libiomp5.so", [self.omp, intel])):
            self.linked_with("made", soname)
            result = self.run_it("--no-mpi", "program", self.root / "made")
            self.assertEqual(result.stderr, "")
            preloaded = [line for line in result.stdout.splitlines() if "LD_PRELOAD" in line]
            self.assertEqual(preloaded, ["LD_PRELOAD=" + ":".join(map(str, faces))])

    def test_a_program_that_may_load_libraries_is_not_warned_of(self):
        """Python loads the MPI itself, or in its own library; a script may start any program."""
        self.linked_with("plain", "libplain.so")
        python = self.root / "python3"
        loads = b"#include <dlfcn.h>\nint load(void) { return dlopen(0, 1) != 0; }"
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libpython3.so.1", "-o",
                        self.root / "libpython3.so.1", "-x", "c", "-"], input=loads, check=True)
        subprocess.run(["cc", "-o", python, "-x", "c", "-", "-x", "none",
                        self.root / "libpython3.so.1", f"-Wl,-rpath,{self.root}"],
                       input=b"int load(void); int main(void) { return load() == 0; }", check=True)
        self.assertNotIn(b"dlopen", python.read_bytes())
        (self.root / "venv").mkdir()
        link = self.root / "venv" / "python"
        link.symlink_to(python)
        script = self.root / "script.py"
        script.write_text(f"#!{python}\nimport imbrex\n", encoding="ascii")
        script.chmod(0o755)
        for words in ([python, script], [link, "-m", "package"], [script], [script, "plain"],
                      [python, script, self.root / "plain"], ["env", "A=1", python, "-c", "1"],
                      [sys.executable, "-c", "pass"], ["program", self.root / "plain"]):
            for before in ([], ["mpirun", "-n", "2"]):
                for threads in ([], ["--threads", "2"]):
                    said = self.run_it(*threads, "--", *before, *words)
                    self.assertEqual(said.stderr, "", words)
        self.assertIn("neither", self.run_it("mpirun", "-n", "2", "env", "plain").stderr)

    def test_a_reader_of_the_output_may_leave(self):
        """`head` is there for one line; and a program that was started dies of SIGPIPE as ever."""
        for words in ([COMMAND, "--help"], [COMMAND.with_name("netlab"), "--help"]):
            said = subprocess.run(["bash", "-c", '"$@" | true', "bash", sys.executable, *words],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((said.returncode, said.stderr), (0, ""), words)
        self.script("writes", "trap 'exit 3' PIPE; while echo y; do :; done")
        said = subprocess.run(
            ["bash", "-c", '"$@" | head -n 1; exit ${PIPESTATUS[0]}', "bash", sys.executable,
             COMMAND, "run", "--no-mpi", "--libraries", self.libraries, self.root / "writes"],
            capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((said.returncode, said.stdout), (3, "y\n"), said.stderr)

    def test_it_loads_little(self):
        """Most of the time of its start was that of Python's modules."""
        said = subprocess.run(
            [sys.executable, "-IS", "-X", "importtime", COMMAND, "run", "--no-mpi", "--libraries",
             self.libraries, "true"], capture_output=True, text=True, check=True)
        loaded = set(re.findall(r"\| +([\w.]+)$", said.stderr, re.MULTILINE))
        self.assertIn("argparse", loaded)
        own = {name for name in loaded if name.startswith("imbrex")}
        self.assertEqual(own, {"imbrex_run", "imbrex_deaths", "imbrex_errors"})
        self.assertEqual(loaded & {"difflib", "json", "pathlib", "site", "tempfile"}, set())

    def test_the_rank_that_dies_is_named_under_hydra(self):
        """Hydra names one process and lists all, also those that it has killed itself. The texts
        are those of MPICH 4.0 and 5.0."""
        def says(text, code):
            return self.dies("mpiexec.hydra", "HYDRA build details: Version: 4.0", text, code)
        told = ("imbrex: rank 0 is process 76 on here\nwarning\n"
                "imbrex: rank 1 is process 77 on here\nimbrex: rank 2 is process 78 on there\n")
        killed = ("=   PID 78 RUNNING AT there\n=   EXIT CODE: 9\n"
                  "=   CLEANING UP REMAINING PROCESSES\n")
        said = says(told + killed + "[mpiexec@here] Exit codes: [here] 0,9 [there] 9", 9)
        self.assertIn("imbrex run: one of 2 ranks (1, 2) was the first to end: by signal 9 (SIG",
                      said)
        self.assertTrue(said.startswith("warning\n="), said)
        self.assertNotIn("mpiexec@", said)
        self.assertIn("rank 1 was the first to end: with exit code 3",
                      says(told + killed + "[mpiexec@here] Exit codes: [here] 0,768 [there] 9", 9))
        self.assertIn("rank 1 was the first to end: with exit code 3",
                      says("[mpiexec@here] Exit codes: [here] 0,768,0", 3))
        self.assertIn("rank 0 was the first to end: by signal 6 (SIGABRT)",
                      says("[mpiexec@here] Exit codes: [here] 6,9", 6))
        self.assertIn("rank 1 was the first to end: by signal 9 (SIGKILL)",
                      says(told + killed + "[mpiexec@here] Exit codes: [here] 0,9 [there] 0", 9))
        self.assertIn("process 78, which is no rank yet, was the first to end: by signal 9",
                      says(killed, 9))

    def test_where_no_rank_has_died_nothing_is_said(self):
        self.assertEqual(self.dies("mpirun", "mpirun (Open MPI) 4.1.4", "all is well", 0),
                         "all is well\n")
        self.assertEqual(self.dies("mpirun", "mpirun (Open MPI) 4.1.4", "usage", 1), "usage\n")

    def test_mistakes_are_named(self):
        self.refuses("a command is missing", "--threads", "2")
        self.refuses("nosuch: there is no such command", "nosuch")
        self.refuses("invalid positive value: '0'", "--threads", "0", "program")
        self.refuses("there is no policy faa (did you mean fa?); valid: default, steal", "--policy",
                     "faa", "program")
        self.refuses("seeded:<number>", "--policy", "seeded:", "program")
        self.refuses("there is no option --polcy: did you mean --policy?", "--polcy", "fifo",
                     "program")
        self.refuses("usage: imbrex run [options] [--] command...", "--polcy=fifo", "program")
        self.refuses("which MPI the program uses", "srun", "program")
        self.launcher("mpiexec", "something else")
        self.refuses("does not say whose launcher it is", "mpiexec", "program")
        self.omp.unlink()
        self.refuses("has no libgomp.so.1 of imbrex", "program")

    def test_a_library_that_has_only_its_versioned_name_is_preloaded(self):
        versioned = self.libraries / "libimbrex_mpi_openmpi.so.0.1"
        self.mpi.rename(versioned)
        self.assertIn(f"LD_PRELOAD={self.omp}:{versioned}",
                      "\n".join(self.lines("mpirun", "-n", "2", "program")))
        self.mpi.write_text("INPUT(libimbrex_mpi_openmpi.so.0.1)\n", encoding="ascii")
        self.assertIn(f"LD_PRELOAD={self.omp}:{versioned}",
                      "\n".join(self.lines("mpirun", "-n", "2", "program")))


if __name__ == "__main__":
    unittest.main()
