# SPDX-License-Identifier: BSD-3-Clause
"""beside_test.py PREFIX WITH_MPI MPI PYTHON: what is installed beside the libraries is whole:
licence, pages with their links, examples that build, man pages, the module file, and the package
for a Python that has mpi4py, if it is there.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

# Paths of the source tree only; pages name them for readers who have it.
SOURCE_ONLY = ("apps", "bench", "src", "tests", "tools", "include", "data", "cmake", "CMakeLists",
               "packaging")
# Environment Modules and Lmod: the first that is installed is used.
MODULE_SYSTEMS = ("/usr/share/modules/init/bash", "/usr/share/lmod/lmod/init/bash")
MODULE_COMMANDS = """
source {init}
module use {prefix}/share/modulefiles
module load imbrex
imbrex --version
for place in $IMBREX_ROOT "$(command -v imbrex)" ${{LD_LIBRARY_PATH%%:*}} \\
    ${{PKG_CONFIG_PATH%%:*}} ${{CMAKE_PREFIX_PATH%%:*}}; do ls -d "$place"; done
module unload imbrex
echo "left: $IMBREX_ROOT $(command -v imbrex)"
"""
AWAITS = """
import asyncio
import imbrex
from imbrex import aio
from mpi4py import MPI

async def send_and_receive():
    comm = aio.wrap(MPI.COMM_WORLD)
    await comm.send("awaited", 0)
    return await comm.recv()

print(asyncio.run(send_and_receive()), imbrex.library_path())
"""


class Beside(unittest.TestCase):
    prefix, with_mpi, mpi, python = pathlib.Path(), True, "", pathlib.Path()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        self.doc = self.prefix / "share/doc/imbrex"

    def output(self, *command, **variables):
        said = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, **variables}, timeout=250)
        self.assertEqual(said.returncode, 0, f"{command}: {said.stdout}{said.stderr}")
        return said.stdout

    def test_the_licence_and_the_pages(self):
        self.assertIn("Redistribution", (self.doc / "LICENSE").read_text())
        pages = list(self.doc.rglob("*.md"))
        self.assertGreater(len(pages), 50)
        for page in pages:
            for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
                place = os.path.normpath(page.parent / target)
                inside = os.path.relpath(place, self.doc)
                if not inside.startswith(SOURCE_ONLY):
                    self.assertTrue(os.path.exists(place), f"{page}: {target}")

    def test_examples_build(self):
        targets = ["hello", "c_add", *(["mpi_exchange"] if self.with_mpi else [])]
        self.output("cmake", "-S", self.doc / "examples", "-B", self.work / "build",
                    f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug")
        self.output("cmake", "--build", self.work / "build", "--target", *targets)
        self.assertIn("42 * 42", self.output(self.work / "build/hello"))

    def test_man_pages(self):
        commands = {path.name for path in (self.prefix / "bin").iterdir()}
        self.assertIn("netlab", commands)
        pages = {path.stem for path in (self.prefix / "share/man/man1").iterdir()}
        self.assertEqual(pages, commands)
        self.assertIn("netlab [--rate", self.output(self.prefix / "bin/netlab", "--help"))

    def test_the_module_file(self):
        files = list((self.prefix / "share/modulefiles/imbrex").iterdir())
        version = self.output(self.prefix / "bin/imbrex", "--version").split()[1]
        self.assertEqual([file.name for file in files], [version])
        text = files[0].read_text()
        self.assertTrue(text.startswith("#%Module"))
        init = next((name for name in MODULE_SYSTEMS if os.path.exists(name)), None)
        if init is None:
            self.skipTest("no environment-modules: tools/install_dependencies --test")
        lines = self.output("env", "-u", "MODULEPATH", "-u", "LOADEDMODULES", "PATH=/usr/bin:/bin",
                            "bash", "-c", MODULE_COMMANDS.format(init=init, prefix=self.prefix)
                            ).splitlines()
        lib = os.path.dirname(next(self.prefix.rglob("libimbrex.so")))
        self.assertEqual(lines, [f"imbrex {version}", str(self.prefix),
                                 f"{self.prefix}/bin/imbrex", lib, f"{lib}/pkgconfig",
                                 str(self.prefix), "left:  "])

    def has_mpi4py(self):
        return self.with_mpi and self.python.exists() and self.mpi in ("openmpi", "mpich")

    def awaits(self, prefix):
        """A program of Python finds the package and the library in `prefix`."""
        place, = prefix.rglob("imbrex/python")
        said = self.output(self.python, "-B", "-c", AWAITS, PYTHONPATH=str(place),
                           MPI4PY_MPIABI=self.mpi, IMBREX_WORKERS="2")
        self.assertEqual(said.split()[0], "awaited")
        library = pathlib.Path(said.split()[1])
        self.assertIn(prefix, library.parents)
        self.assertTrue(library.name.startswith(f"libimbrex_mpi_{self.mpi}"), library)

    def test_the_python_package(self):
        place, = self.prefix.rglob("imbrex/python")
        self.assertTrue((place / "imbrex/py.typed").exists())
        if not self.has_mpi4py():
            self.skipTest("no Python with mpi4py for this MPI: tools/install_mpi mpi4py")
        self.awaits(self.prefix)

    def test_a_moved_prefix_works(self):
        moved = self.work / "moved"
        shutil.copytree(self.prefix, moved, symlinks=True)
        if self.has_mpi4py():
            self.awaits(moved)
        hello = self.work / "hello"
        self.output(moved / "bin/imbrex-c++", "--no-mpi", self.doc / "examples/hello.cpp", "-o",
                    hello)
        self.assertIn(str(moved), self.output("readelf", "-d", hello))
        self.assertIn("42 * 42", self.output(hello))
        self.assertIn(f"{moved}/lib", self.output(moved / "bin/imbrex", "run", "--no-mpi", "--",
                                                  "printenv", "LD_PRELOAD"))


if __name__ == "__main__":
    Beside.prefix = pathlib.Path(sys.argv[1]).resolve()
    Beside.with_mpi = sys.argv[2] == "1"
    Beside.mpi, Beside.python = sys.argv[3], pathlib.Path(sys.argv[4])
    unittest.main(argv=sys.argv[:1])
