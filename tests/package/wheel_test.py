# SPDX-License-Identifier: BSD-3-Clause
"""wheel_test.py PREFIX SOURCES [MPICC]: packaging/build_wheel makes a wheel of an installed imbrex.

Methodology: PREFIX was not built for a wheel, so its libraries need others, which must be refused.
packaging/test_wheel builds and installs a real wheel. MPICC is the wrapper of the MPI of PREFIX.
"""
import base64
import csv
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SCRIPT = str(pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/build_wheel")
LOADER = importlib.machinery.SourceFileLoader("build_wheel", SCRIPT)
build_wheel = importlib.util.module_from_spec(importlib.util.spec_from_loader(LOADER.name, LOADER))
LOADER.exec_module(build_wheel)


class Wheel(unittest.TestCase):
    prefix = sources = pathlib.Path()
    mpicc = ""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)
        stage = cls.work / "stage"
        shutil.copytree(cls.prefix, stage / "imbrex", symlinks=True,
                        ignore=shutil.ignore_patterns("tsan"))
        build_wheel.arrange(stage)
        cls.wheel = build_wheel.pack(stage, cls.work)
        cls.site = cls.work / "site"
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.site)

    def command(self, name, *arguments, path=""):
        script = self.work / name  # as pip writes it
        script.write_text("import sys, imbrex_command\nsys.exit(imbrex_command.main())\n", "ascii")
        said = subprocess.run(
            [sys.executable, script, *arguments], capture_output=True, text=True, check=False,
            timeout=100, cwd=self.work,
            env={**os.environ, "PYTHONPATH": str(self.site), "PATH": f"{path}:/usr/bin:/bin"})
        return said.returncode, said.stdout + said.stderr

    def test_every_file_is_in_the_record(self):
        info = self.site / f"imbrex-{build_wheel.version()}.dist-info"
        with open(info / "RECORD", encoding="utf-8", newline="") as file:
            record = {row[0]: row[1] for row in csv.reader(file)}
        files = {str(path.relative_to(self.site)): path for path in self.site.rglob("*")
                 if path.is_file()}
        self.assertEqual(record.keys(), files.keys())
        for name, digest in record.items():
            if digest:
                content = hashlib.sha256(files[name].read_bytes()).digest()
                self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(content)
                                 .rstrip(b"=").decode(), name)

    def test_commands_find_the_package(self):
        self.assertEqual(self.command("imbrex", "--version"),
                         (0, f"imbrex {build_wheel.version()}\n"))
        self.assertIn(f"{self.site}/imbrex/lib/imbrex/libgomp.so.1",
                      self.command("imbrex", "run", "--no-mpi", "--", "printenv", "LD_PRELOAD")[1])
        self.assertIn("netlab [--rate", self.command("netlab", "--help")[1])

    def test_programs_are_compiled_and_run(self):
        self.assertEqual(self.command("imbrex-c++", "--no-mpi", self.sources / "main.cpp", "-o",
                                      "program"), (0, ""))
        needed = subprocess.run(["readelf", "-d", self.work / "program"], capture_output=True,
                                text=True, check=True).stdout
        self.assertIn("[libimbrex.so.0.1]", needed)
        subprocess.run([self.work / "program"], check=True, timeout=60)

    def test_mpicc_chooses_the_library(self):
        if not self.mpicc:
            self.skipTest("no MPI")
        folder = self.work / "bin"
        folder.mkdir()
        script = folder / "mpicc"
        script.write_text(f"#!/bin/sh\nexec {self.mpicc} \"$@\"\n", encoding="ascii")
        script.chmod(0o755)
        libs = self.command("imbrex", "config", "--libs", path=folder)[1]
        self.assertRegex(libs, "-limbrex_mpi_[a-z]+ -limbrex")
        script.write_text("#!/bin/sh\necho imbrex_abi=other\n", encoding="ascii")
        status, said = self.command("imbrex", "config", "--libs", path=folder)
        self.assertEqual(status, 1)
        self.assertIn("no imbrex::mpi for it", said)

    def test_newer_symbols_and_other_libraries_are_refused(self):
        with self.assertRaises(SystemExit) as caught:
            build_wheel.refuse_newer_symbols(self.site / "imbrex")
        self.assertRegex(str(caught.exception), r"libimbrex\.so\.[0-9.]+ needs lib(hwloc|fmt)")
        floor, build_wheel.FLOOR = build_wheel.FLOOR, {**build_wheel.FLOOR, "GLIBC": (2, 17)}
        self.addCleanup(setattr, build_wheel, "FLOOR", floor)
        with self.assertRaises(SystemExit) as caught:
            build_wheel.refuse_newer_symbols(self.site / "imbrex")
        self.assertRegex(str(caught.exception), r"dlopen needs GLIBC_2\.34")


if __name__ == "__main__":
    Wheel.prefix, Wheel.sources = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    Wheel.mpicc = sys.argv[3] if len(sys.argv) > 3 else ""
    unittest.main(argv=sys.argv[:1])
