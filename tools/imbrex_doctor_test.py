#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""imbrex_doctor_test.py [LIBRARIES MPICC LAUNCHER...]: tests `imbrex doctor` on nodes that are
files in a folder, with launchers and compilers that are scripts; and with the real ones, if
named."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import imbrex_doctor
import imbrex_doctor_launch
from imbrex_doctor_machine import Machine

COMMAND = pathlib.Path(__file__).resolve().parent / "imbrex"
MOUNTS = {1: "32 31 0:29 / /sys/fs/cgroup/{0} rw - cgroup cgroup rw,{0}\n",
          2: "32 31 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}
# Starts its program once for each rank; -x as of Open MPI.
LAUNCHER = """if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.4"; exit; fi
count=1
while :; do case "$1" in
  -n) count=$2; shift 2 ;;
  -x) export "$2"; shift 2 ;;
  *) break ;;
esac; done
rank=0
while [ $rank -lt $count ]; do OMPI_COMM_WORLD_RANK=$rank "$@" || exit; rank=$((rank + 1)); done"""
# The "compiler" writes a script, which prints what LEVEL and RANKS are.
COMPILER = r"""while [ "$1" != -o ]; do shift; done
cat > "$2" <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0
imbrex=none; [ -z "$LD_PRELOAD" ] || imbrex=0.1.0
for fact in "level ${LEVEL:-MPI_THREAD_MULTIPLE}" "ranks ${RANKS:-2}" "arrived ${ARRIVED:-1}" \
  "library Fake MPI 1" "imbrex $imbrex" "workers_least 1" "workers_most 2"
do echo "[1,0]<stdout>:imbrex-doctor $fact"; done
END
chmod +x "$2" """
LIBRARY = b"""
#include <stdio.h>
#include <stdlib.h>
const char* imbrex_version(void) { return "0.1.0"; }
int imbrex_place_count(void) {
  const char* const workers = getenv("IMBREX_WORKERS");
  if (getenv("IMBREX_WORKRS") != NULL) {
    fprintf(stderr, "imbrex: there is no option IMBREX_WORKRS (did you mean IMBREX_WORKERS?): it is"
                    " ignored; IMBREX_HELP=1 prints all options\\n");
  }
  if (workers != NULL && workers[0] == 'x') {
    fprintf(stderr, "imbrex: IMBREX_WORKERS=x: valid: 0 to 4096\\n");
    _Exit(2);
  }
  return workers == NULL ? 1 : atoi(workers);
}
"""


def rank_on(host, allowed, present=4, **variables):
    return {"rank": 0, "host": host, "allowed": allowed, "present": present, "limits": {},
            "variables": variables}


class Node(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.machine = Machine(folder.name)

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def finds(self, state, text, findings):
        found = [one for one in findings if one.state == state]
        self.assertTrue(found, findings)
        self.assertIn(text, found[0].value)
        self.assertEqual(bool(found[0].remedy), state != "ok", found)

    def test_a_quota_of_version_2_is_the_least_of_the_groups_around(self):
        self.write("/proc/self/mountinfo", MOUNTS[2])
        self.write("/proc/self/cgroup", "0::/jobs/one\n")
        self.assertIsNone(self.machine.quota())
        self.write("/sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n")
        self.assertIsNone(self.machine.quota())
        self.write("/sys/fs/cgroup/jobs/cpu.max", "150000 100000\n")
        self.write("/sys/fs/cgroup/cpu.max", "400000 100000\n")
        self.assertEqual(self.machine.quota(), 1.5)
        self.write("/sys/fs/cgroup/jobs/pids.max", "99\n")
        self.write("/sys/fs/cgroup/jobs/one/pids.max", "max\n")
        self.assertEqual(self.machine.processes_max(), 99)

    def test_a_quota_of_version_1_is_found(self):
        self.write("/proc/self/mountinfo", MOUNTS[1].format("cpu") + MOUNTS[1].format("pids"))
        self.write("/proc/self/cgroup", "4:cpu:/a\n3:pids:/b\n0::/\n")
        self.write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n")
        self.write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
        self.assertIsNone(self.machine.quota())
        self.write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n")
        self.assertEqual(self.machine.quota(), 2.5)
        self.write("/sys/fs/cgroup/pids/b/pids.max", "10\n")
        self.finds("warn", "10 (pids.max of the control group is", self.machine.threads(1))

    def test_workers_are_compared_with_processors_and_quota(self):
        self.finds("ok", "no CPU quota; one process starts 2 workers",
                   self.machine.processors({0, 1}, 2))
        self.finds("warn", "one process starts 3 workers", self.machine.processors({0, 1}, 3))
        self.finds("note", "one process starts 1 worker", self.machine.processors({0, 1}, 1))
        self.finds("ok", "2 of", self.machine.processors({0, 1}, None))
        self.write("/proc/self/mountinfo", MOUNTS[2])
        self.write("/proc/self/cgroup", "0::/\n")
        self.write("/sys/fs/cgroup/cpu.max", "50000 100000\n")
        self.finds("note", "CPU quota 0.5; one process starts 1 worker",
                   self.machine.processors({0, 1}, 1))
        self.finds("warn", "CPU quota 0.5", self.machine.processors({0, 1}, 2))

    def test_a_node_without_files_is_described(self):
        machine = self.machine
        for findings in (machine.processors({0}, None), machine.load({0}), machine.mappings(),
                         machine.shared_memory(1), machine.stacks(), machine.address_space(),
                         machine.threads(1), machine.ptrace(), machine.core_files(),
                         machine.network()):
            for one in findings:
                self.assertIn(one.state, ("ok", "note", "warn", "FAIL"))
                self.assertEqual(bool(one.remedy), one.state != "ok", one)
        self.finds("FAIL", "there is no /dev/shm", machine.shared_memory(1))
        self.finds("note", "/proc/self/syscall", machine.ptrace()[1:])
        self.finds("note", "there is no vm.max_map_count", machine.mappings())
        self.finds("ok", "none but lo", machine.network())

    def test_malformed_files_set_no_limit(self):
        for text in ("", "\0\xff", "x y", "1 2 3 - cgroup2", ":::::", "9" * 400):
            for path in ("/proc/self/mountinfo", "/proc/self/cgroup", "/proc/loadavg",
                         "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/kernel/core_pattern"):
                self.write(path, text)
            self.assertIsNone(self.machine.quota())
            self.assertIsNone(self.machine.processes_max())
            for findings in (self.machine.load({0}), self.machine.ptrace(),
                             self.machine.core_files()):
                self.assertTrue(findings)

    def test_small_values_are_warned_of(self):
        (self.root / "dev/shm").mkdir(parents=True)
        self.finds("ok", "/dev/shm has", self.machine.shared_memory(0))
        self.finds("warn", "/dev/shm has", self.machine.shared_memory(10 ** 9))
        self.write("/proc/sys/vm/max_map_count", "65530\n")
        self.finds("ok", "about 32765 waiting tasks", self.machine.mappings())
        self.write("/proc/sys/vm/max_map_count", "1000\n")
        self.finds("warn", "about 500 waiting tasks", self.machine.mappings())
        self.write("/proc/loadavg", "7.5 1 1 1/1 1\n")
        self.finds("warn", "7.5 threads want to run, on 2 processors", self.machine.load({0, 1}))
        self.finds("ok", "7.5", self.machine.load(set(range(8))))
        self.write("/proc/sys/kernel/yama/ptrace_scope", "3\n")
        self.finds("note", "ptrace_scope is 3", self.machine.ptrace())
        self.write("/proc/sys/kernel/core_pattern", "|/usr/lib/catch %P\n")
        self.finds("note", "core_pattern is |/usr/lib/catch", self.machine.core_files())

    def test_networks_are_named(self):
        self.write("/sys/class/net/eth0/operstate", "up\n")
        self.write("/sys/class/net/eth1/operstate", "down\n")
        self.write("/sys/class/net/lo/operstate", "unknown\n")
        self.write("/sys/class/infiniband/mlx5_0/fw_ver", "1\n")
        self.write("/dev/xpmem", "")
        value = self.machine.network()[0].value
        self.assertTrue(value.startswith(
            "interfaces eth0; InfiniBand or RoCE mlx5_0; XPMEM xpmem"), value)


class Ranks(unittest.TestCase):
    def binding(self, *masks):
        return imbrex_doctor.binding_of("n", [rank_on("n", mask) for mask in masks])

    def test_the_binding_is_judged(self):
        self.assertEqual(self.binding([0, 1], [2, 3]).state, "ok")
        self.assertEqual(self.binding([0, 1, 2, 3], [0, 1, 2, 3]).state, "ok")
        self.assertEqual(self.binding([0], [1], [2], [3]).value,
                         "4 ranks on n: 1 of 4 processors each")
        idle = self.binding([0], [1])
        self.assertEqual((idle.state, idle.value),
                         ("warn", "2 ranks on n: 1 of 4 processors each, 2 together"))
        self.assertIn("the others stay idle", idle.remedy)
        shared = self.binding([0], [0])
        self.assertIn("bound to the same processors", shared.remedy)
        self.assertIn("1-3 of 4", self.binding([0], [1, 2, 3]).value)

    def oversubscription(self, *ranks):
        facts = types.SimpleNamespace(ranks=list(ranks), machine=Machine("/nowhere"))
        return [one.state for one in imbrex_doctor.oversubscription(facts)]

    def test_more_ranks_or_workers_than_processors_are_warned_of(self):
        self.assertEqual(self.oversubscription(rank_on("n", [0, 1]), rank_on("n", [0, 1])), ["ok"])
        self.assertEqual(self.oversubscription(*[rank_on("n", [0, 1])] * 3, rank_on("m", [0])),
                         ["warn", "ok"])
        self.assertEqual(self.oversubscription(
            rank_on("n", [0, 1], IMBREX_WORKERS="2"), rank_on("n", [0, 1], IMBREX_WORKERS="2")),
            ["warn"])

    def test_lending_needs_common_memory_and_processors(self):
        def finding(*ranks):
            return imbrex_doctor.lending_of("n", [
                {**rank_on("n", allowed), "shared_memory": memory, "process_space": space}
                for allowed, memory, space in ranks])
        one, two = ([0], "1:1", "pid:[1]"), ([1], "1:1", "pid:[1]")
        self.assertEqual(finding(one, two),
                         ("ok", "2 ranks on n: possible by IMBREX_LEND=1", ""))
        self.assertIn("no other rank", finding(one).value)
        for other, text in ((([1], "", "pid:[1]"), "no writable /dev/shm"),
                            (([1], "2:1", "pid:[1]"), "different containers"),
                            (([1], "1:1", "pid:[2]"), "different containers"),
                            (([0], "1:1", "pid:[1]"), "they share 1 processor")):
            found = finding(one, other)
            self.assertEqual((found.state, bool(found.remedy)), ("note", True))
            self.assertIn(text, found.value)

    def test_a_probe_is_started_in_place_of_each_program(self):
        def starting(kind, *words):
            return imbrex_doctor_launch.Command(list(words)).starting(["probe"], kind)
        self.assertEqual(starting("openmpi", "mpirun", "-n", "2"), ["mpirun", "-n", "2", "probe"])
        self.assertEqual(starting("openmpi", "mpirun", "-x", "A=1", "-n", "2", "sh", "-c", "x"),
                         ["mpirun", "-x", "A=1", "-n", "2", "probe"])
        self.assertEqual(starting("openmpi", "mpirun", "-n", "1", "env", "A=1", sys.executable,
                                  "x", ":", "-n", "3", sys.executable),
                         ["mpirun", "-n", "1", "env", "A=1", "probe", ":", "-n", "3", "probe"])
        self.assertEqual(starting("mpich", "mpiexec", "-genv", "A", "env", "-n", "2", "sh"),
                         ["mpiexec", "-genv", "A", "env", "-n", "2", "probe"])


class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.library = pathlib.Path(folder.name) / "library.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", cls.library, "-x", "c", "-"],
                       input=LIBRARY, check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.libraries = self.root / "lib"
        (self.libraries / "omp").mkdir(parents=True)
        for library in ("libimbrex.so", "omp/libgomp.so.1", "libimbrex_mpi_openmpi.so"):
            shutil.copy(self.library, self.libraries / library)
        self.script("mpirun", LAUNCHER)
        self.script("mpicc", COMPILER)
        (self.root / "work").mkdir()

    def script(self, name, text):
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def linked_with(self, name, *sonames):
        for soname in sonames:
            subprocess.run(["cc", "-shared", f"-Wl,-soname,{soname}", "-o", self.root / soname,
                            "-x", "c", "-"], input=b"", check=True)
        subprocess.run(["cc", "-o", self.root / name, "-x", "c", "-", "-x", "none",
                        "-Wl,--no-as-needed", *(self.root / soname for soname in sonames),
                        f"-Wl,-rpath,{self.root}"], input=b"int main(void){return 0;}", check=True)

    def environment(self, **variables):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OMP_", "OMPI_", "IMBREX_", "LD_", "PMI"))}
        return {**kept, "PATH": f"{self.root}:{kept['PATH']}", "TMPDIR": str(self.root / "work"),
                **variables}

    def run_it(self, *arguments, code=0, **variables):
        """The findings of each check, as "state: value -> remedy"."""
        said = subprocess.run([sys.executable, COMMAND, "doctor", "--json", "--libraries",
                               self.libraries, *arguments], capture_output=True, text=True,
                              check=False, cwd=self.root / "work",
                              env=self.environment(**variables))
        self.assertEqual((said.returncode, said.stderr), (code, ""), said.stdout)
        self.assertEqual(list((self.root / "work").iterdir()), [])
        found = {}
        for one in json.loads(said.stdout)["checks"]:
            self.assertEqual(bool(one["remedy"]), one["state"] != "ok", one)
            found.setdefault(one["check"], []).append(
                f"{one['state']}: {one['value']} -> {one['remedy']}")
        self.assertEqual(list(found), [name for name, _ in imbrex_doctor.CHECKS])
        return {name: "\n".join(texts) for name, texts in found.items()}

    def test_where_all_is_right_it_says_so(self):
        found = self.run_it("--", "mpirun", "-n", "2", "sh")
        for name, text in (
                ("versions", "is 0.1.0"), ("options", "no IMBREX_* variable is set"),
                ("launcher", "is of Open MPI: mpirun (Open MPI) 4.1.4"),
                ("program", "is linked with no MPI, and not with imbrex"),
                ("ranks", "2 ranks on 1 node"), ("binding", "2 ranks on"),
                ("thread level", "Fake MPI 1 gives MPI_THREAD_MULTIPLE to 2 ranks, and messages"),
                ("with imbrex", "imbrex 0.1.0 runs in 2 ranks, with 1-2 workers each")):
            self.assertIn(text, found[name])
            self.assertTrue(found[name].startswith("ok: "), found[name])
        self.assertIn("2 ranks on 1 node", self.run_it()["ranks"])  # mpirun -n 2 by default

    def test_mistakes_in_variables_are_found_here_and_in_ranks(self):
        misspelt = "there is no option IMBREX_WORKRS (did you mean IMBREX_WORKERS?)"
        self.assertIn(f"warn: {misspelt} ->", self.run_it(IMBREX_WORKRS="3")["options"])
        self.assertIn(f"warn: in rank 0: {misspelt} ->", self.run_it(
            "--", "mpirun", "-x", "IMBREX_WORKRS=3", "-n", "2")["options"])
        self.assertIn("FAIL: IMBREX_WORKERS=x -> ",
                      self.run_it(code=1, IMBREX_WORKERS="x")["options"])
        found = self.run_it(IMBREX_WORKERS="4000")
        self.assertIn("starts 4000 workers -> set IMBREX_WORKERS", found["processors"])
        self.assertIn("ok: the runtime takes IMBREX_WORKERS", found["options"])

    def test_the_thread_level_counts(self):
        funneled = {"LEVEL": "MPI_THREAD_FUNNELED"}
        found = self.run_it(code=1, **funneled)["thread level"]
        self.assertIn("FAIL: Fake MPI 1 gives MPI_THREAD_FUNNELED", found)
        self.assertIn("IMBREX_PROGRESS=dedicated-thread", found)
        self.assertIn("note: ", self.run_it(IMBREX_PROGRESS="dedicated-thread",
                                            **funneled)["thread level"])
        self.assertIn("each process is rank 0 of 1", self.run_it(code=1, RANKS="1")["thread level"])
        self.assertIn("has not arrived", self.run_it(code=1, ARRIVED="0")["thread level"])

    def test_a_slow_launcher_is_not_called_broken(self):
        version = LAUNCHER.splitlines()[0]
        self.script("mpirun", f'{version}\necho $$ > {self.root}/started\nexec sleep 600')
        found = self.run_it("--seconds", "3", "--", "mpirun", "-n", "2")
        self.assertIn("warn: did not end in 3 s -> ", found["ranks"])
        self.assertIn("did not end in time", found["with imbrex"])
        started = int((self.root / "started").read_text(encoding="ascii"))
        self.assertRaises(ProcessLookupError, os.kill, started, 0)

    def test_the_compiler_has_the_suffix_of_the_launcher(self):
        """As mpirun.mpich and mpicc.mpich of Debian, where mpicc is another MPI's."""
        for name in ("mpirun", "mpicc"):
            (self.root / name).rename(self.root / f"{name}.other")
        self.script("mpicc", "echo wrong >&2; exit 1")
        self.assertIn("ok: Fake MPI 1", self.run_it("--", "mpirun.other", "-n",
                                                    "2")["thread level"])

    def test_a_launcher_that_fails_is_quoted(self):
        version = LAUNCHER.splitlines()[0]
        self.script("mpirun", f'{version}\necho "----\n\nThere are not enough slots" >&2\nexit 1')
        found = self.run_it(code=1)
        self.assertRegex(found["ranks"], "^FAIL: .*There are not enough slots -> .*oversubscribe")
        self.assertIn("note: not tried: no rank was started", found["thread level"])
        self.script("mpirun", "echo mine")
        self.assertIn("does not say whose launcher it is", self.run_it()["launcher"])

    def test_a_compiler_that_is_absent_or_fails_is_no_fault(self):
        self.assertIn("note: not tried: there is no command nocc",
                      self.run_it("--mpicc", "nocc")["thread level"])
        self.script("mpicc", "echo no licence >&2; exit 1")
        self.assertRegex(self.run_it()["with imbrex"], "note: not tried: .*failed: no licence")

    def test_a_program_of_another_mpi_is_found(self):
        self.linked_with("other", "libmpi.so.12")
        self.linked_with("lost", "libnosuch.so.7")
        (self.root / "libnosuch.so.7").unlink()
        found = self.run_it("--", "mpirun", "-n", "2", self.root / "other", code=1)
        self.assertIn("linked with MPICH, and not with imbrex; mpirun is of Open MPI ->",
                      found["program"])
        self.assertIn("does not find libnosuch.so.7", self.run_it(
            "--", "mpirun", "-n", "2", self.root / "lost", code=1)["program"])
        found = self.run_it("--", self.root / "other")
        self.assertIn("is no launcher of an MPI", found["launcher"])
        self.assertIn("ok: ", found["program"])

    def test_two_openmp_libraries_are_told(self):
        self.linked_with("both", "libgomp.so.1", "libomp.so.5")
        self.linked_with("clang", "libomp.so.5")
        for name, state in (("both", "note"), ("clang", "ok")):
            found = self.run_it("--", "mpirun", "-n", "2", self.root / name)["OpenMP"]
            self.assertTrue(found.startswith(f"{state}: "), found)

    def test_headers_must_fit_the_library(self):
        header = self.root / "include/imbrex/version.h"
        header.parent.mkdir(parents=True)
        text = "#define IMBREX_VERSION_{} {}\n"
        for numbers, state in (((0, 1, 0), "ok"), ((0, 2, 0), "FAIL"), ((0, 1, 1), "FAIL")):
            header.write_text("".join(map(text.format, ("MAJOR", "MINOR", "PATCH"), numbers)),
                              encoding="ascii")
            found = self.run_it(code=1 if state == "FAIL" else 0)["versions"]
            self.assertTrue(found.startswith(f"{state}: "), found)

    def test_a_machine_without_anything_is_described(self):
        (self.libraries / "libimbrex.so").unlink()
        found = self.run_it(code=1, PATH="/nowhere")
        self.assertIn("FAIL: ", found["versions"])
        self.assertIn("note: there is no mpirun", found["launcher"])
        self.assertIn("note: not tried", found["thread level"])
        self.assertIn("FAIL: there is no command mpirun", self.run_it(
            "--", "mpirun", "-n", "2", code=1, PATH="/nowhere")["launcher"])
        self.assertIn("FAIL: there is no command ./nosuch", self.run_it(
            "--", "./nosuch", code=1)["program"])

    def test_a_reader_of_the_output_may_leave(self):
        said = subprocess.run(["bash", "-c", '"$@" | head -n 1', "bash", sys.executable, COMMAND,
                               "doctor", "--libraries", self.libraries], capture_output=True,
                              text=True, check=False, env=self.environment())
        self.assertRegex(said.stdout, "^(ok|note|warn) +processors: .*\n$")
        self.assertEqual(said.stderr, "")
        self.assertEqual(list((self.root / "work").iterdir()), [])

    def test_mistakes_in_the_command_are_named(self):
        for words, text in ((["--secnds", "2"], "did you mean --seconds?"),
                            (["--seconds", "0"], "invalid seconds value: '0'")):
            said = subprocess.run([sys.executable, COMMAND, "doctor", *words], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(said.returncode, 2)
            self.assertIn(text, said.stderr)


class Real(unittest.TestCase):
    libraries, mpicc, launcher = "", "", ()

    def setUp(self):
        if not self.launcher:
            self.skipTest("no libraries, compiler and launcher are named")

    def test_a_real_mpi_and_the_runtime_are_tried(self):
        said = subprocess.run(
            [sys.executable, COMMAND, "doctor", "--seconds", "100", "--json", "--libraries",
             self.libraries, "--mpicc", self.mpicc, "--", *self.launcher, "2"],
            capture_output=True, text=True, check=False, env={**os.environ, "IMBREX_WORKRS": "3"})
        checks = {one["check"]: one for one in json.loads(said.stdout)["checks"]}
        for name in ("versions", "launcher", "ranks", "thread level", "with imbrex"):
            self.assertEqual(checks[name]["state"], "ok", checks[name])
        self.assertEqual(checks["options"]["value"],
                         "there is no option IMBREX_WORKRS (did you mean IMBREX_WORKERS?)")
        self.assertRegex(checks["processors"]["value"], "one process starts [0-9]+ worker")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        Real.libraries, Real.mpicc, *Real.launcher = sys.argv[1:]
        del sys.argv[1:]
    unittest.main()
