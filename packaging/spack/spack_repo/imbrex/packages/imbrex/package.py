# SPDX-License-Identifier: BSD-3-Clause
"""The Spack recipe of imbrex, for Spack 1.0 and newer. It builds the tree in which it stands."""
import pathlib

from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Imbrex(CMakePackage):
    """A task runtime for MPI programs. A task that waits in a plain blocking call of MPI is
    suspended, and its core runs another task."""

    git = pathlib.Path(__file__).resolve().parents[6].as_uri()

    license("BSD-3-Clause")
    version("main", branch="main")

    variant("mpi", default=True, description="Build the library for the MPI of the spec")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    # Programs compile the Fortran modules with their own compiler, so none is needed here.
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("boost@1.74: +context")
    depends_on("hwloc@2:")
    depends_on("expat")
    depends_on("fmt@9:")
    depends_on("mpi@3:", when="+mpi")
    depends_on("python@3.9:", type=("build", "run"))

    conflicts("platform=darwin", msg="imbrex runs on Linux")
    conflicts("platform=windows", msg="imbrex runs on Linux")
    conflicts("%gcc@:10", msg="imbrex is written in C++20")
    conflicts("%clang@:14", msg="imbrex is written in C++20")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define_from_variant("IMBREX_BUILD_MPI", "mpi"),
            self.define("IMBREX_BUILD_TESTS", False),
            self.define("IMBREX_BUILD_APPS", False),
            self.define("IMBREX_TSAN_VARIANT", False),
            self.define("IMBREX_WERROR", False),
            # The command `imbrex` is a Python script, which runs under the Python of the spec.
            self.define("Python3_EXECUTABLE", self.spec["python"].command.path),
        ]
        if self.spec.satisfies("+mpi"):
            arguments.append(self.define("IMBREX_MPI", self.spec["mpi"].mpicc))
        return arguments

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def command_runs(self):
        Executable(self.prefix.bin.imbrex)("--version")
