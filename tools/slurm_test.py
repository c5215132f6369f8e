# SPDX-License-Identifier: BSD-3-Clause
"""slurm_test.py PROGRAM LIBRARY: the commands of docs/user/cluster.md under a Slurm of one node.

munge, slurmctld and slurmd run in a folder of their own, with ports of their own, and end with the
test. PROGRAM is the example mpi_exchange, LIBRARY the folder of libimbrex_mpi. Exit status 77 where
Slurm is not installed, or this user is not root."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "munged")
CONFIGURATION = """
ClusterName=imbrex
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=4
PartitionName=all Nodes={host} Default=YES MaxTime=10
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Slurm(unittest.TestCase):
    program, library = "", ""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        for name in ("state", "spool"):
            (cls.folder / name).mkdir()
        (cls.folder / "munge.key").write_bytes(os.urandom(128))
        (cls.folder / "munge.key").chmod(0o400)
        conf = cls.folder / "slurm.conf"
        conf.write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=cls.folder, controller=free_port(),
            node=free_port()))
        left_out = ("SLURM_", "SBATCH_", "OMPI_", "PMIX_", "PMI_", "IMBREX_")
        cls.environment = {key: value for key, value in os.environ.items()
                           if not key.startswith(left_out)}
        cls.environment |= {"SLURM_CONF": str(conf), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "IMBREX_WORKERS": "1",
                            "PMIX_MCA_gds": "hash", "PATH": "/usr/sbin:" + os.environ["PATH"]}
        munge = [f"--{name}={cls.folder}/munge.{name.split('-')[0]}" for name in
                 ("key-file", "socket", "pid-file", "log-file", "seed-file")]
        for command in (["munged", "--foreground", "--force", *munge], ["slurmctld", "-D"],
                        ["slurmd", "-D"]):
            cls.start(command)
        end = time.monotonic() + 60
        while "idle" not in cls.said("sinfo", "--noheader", "--format=%t").stdout:
            if time.monotonic() > end:
                raise RuntimeError("Slurm does not start: " + "".join(
                    path.read_text()[-2000:] for path in cls.folder.glob("*.log")))
            time.sleep(0.2)

    @classmethod
    def start(cls, command):
        process = subprocess.Popen(command, env=cls.environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.terminate)

    @classmethod
    def said(cls, *command, **more):
        return subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env=cls.environment | more)

    def ends_well(self, *command, **more):
        result = self.said(*command, **more)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        return result.stdout + result.stderr

    def test_srun_with_pmix(self):
        kinds = self.ends_well("srun", "--mpi=list")
        for kind in ("pmix", "pmi2"):  # of which docs/user/cluster.md speaks
            self.assertIn(kind, kinds)
        said = self.ends_well("srun", "--mpi=pmix", "-n", "2", self.program,
                              IMBREX_SUMMARY="1")
        self.assertIn("2 ranks", said)

    def test_srun_with_pmi2(self):
        mpich, library = ROOT / "build/mpi/mpich/bin/mpicxx", next(
            (ROOT / "build/mpich/lib").glob("libimbrex_mpi_mpich.so"), None)
        if library is None or not mpich.is_file():
            self.skipTest("the tree of MPICH 5 is not built")
        said = self.ends_well(
            "srun", "--mpi=pmi2", "-n", "2", f"--export=ALL,LD_PRELOAD={library}",
            self.plain(mpich), IMBREX_SUMMARY="1", IMBREX_MAIN_AS_TASK="1")
        self.assertIn("imbrex: MPI: MPICH", said)
        self.assertIn("2 ranks", said)

    def plain(self, compiler):
        program = self.folder / f"plain_{self.id().split('.')[-1]}"
        self.ends_well(str(compiler), "-std=c++20", "-O1",
                       str(ROOT / "examples/mpi_heat_plain.cpp"), "-o", str(program))
        return str(program)

    def test_sbatch(self):
        for start in ("srun --mpi=pmix --cpus-per-task=2", "mpirun --oversubscribe"):
            with self.subTest(start=start):
                script = self.folder / "job.sh"
                script.write_text("#!/bin/bash\n#SBATCH --ntasks=2\n#SBATCH --cpus-per-task=2\n"
                                  "#SBATCH --hint=nomultithread\n"
                                  f"export IMBREX_STALL=abort\n{start} {self.program}\n")
                self.ends_well("sbatch", "--wait", f"--output={self.folder}/job.txt",
                               str(script))

    def test_a_program_without_imbrex(self):
        plain = self.plain("mpicxx")
        srun = ("srun", "--mpi=pmix", "-n", "2")
        more = {"IMBREX_SUMMARY": "1", "IMBREX_MAIN_AS_TASK": "1"}
        self.assertNotIn("imbrex:", self.ends_well(*srun, plain, **more))
        self.assertIn("imbrex: MPI: Open MPI", self.ends_well(
            *srun, f"--export=ALL,LD_PRELOAD={self.library}/libimbrex_mpi.so", plain, **more))
        self.assertIn("imbrex: MPI: Open MPI", self.ends_well(
            f"{self.library}/../bin/imbrex", "run", "--", *srun, plain, **more))


if __name__ == "__main__":
    Slurm.program, Slurm.library = sys.argv[1:3]
    path = "/usr/sbin:" + os.environ["PATH"]
    if os.geteuid() != 0 or not all(shutil.which(name, path=path) for name in PROGRAMS):
        print("slurm_test.py: needs root and Debian's Slurm: tools/install_dependencies --slurm")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
