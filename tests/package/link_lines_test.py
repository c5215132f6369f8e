# SPDX-License-Identifier: BSD-3-Clause
"""link_lines_test.py PREFIX SOURCES WITH_MPI [INTERFACE MPICC]: programs are built with an
installed imbrex in each way that it offers to those who do not use CMake, and run.

Methodology: all is linked with --as-needed, and what the user names of the MPI stands in front, so
that a libimbrex_mpi in the wrong place would be dropped. mpi.cpp then waits for ever, and the core
warns.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

AS_NEEDED = "-Wl,--as-needed"


class Installed(unittest.TestCase):
    prefix = sources = interface = mpicc = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = pathlib.Path(folder.name) / "program"
        self.environment = dict(
            os.environ, PKG_CONFIG_PATH=str(next(self.prefix.glob("lib*/**/pkgconfig"))))

    def output(self, *command):
        said = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              check=False, env=self.environment, timeout=100,
                              cwd=self.program.parent)
        self.assertEqual(said.returncode, 0, f"{command}: {said.stdout}{said.stderr}")
        return said.stdout + said.stderr

    def words(self, *command):
        return shlex.split(self.output(*command))

    def imbrex(self, name="imbrex"):
        return self.prefix / "bin" / name

    def builds(self, source, *command, fails_with=None, arguments=()):
        """The program of `source` that `command` makes does what it should, and nothing warns; or
        it fails and says this."""
        self.output(*command, AS_NEEDED, self.sources / source, "-o", self.program)
        # pkg-config's lines leave it to the user where libraries are found at run time.
        folders = [self.prefix / "lib", pathlib.Path(self.mpicc).parent.parent / "lib"]
        self.environment["LD_LIBRARY_PATH"] = ":".join(map(str, folders))
        if fails_with is None:
            self.assertEqual(self.output(self.program, *arguments), "")
            return
        said = subprocess.run([self.program, *arguments], capture_output=True, text=True,
                              check=False, env=self.environment, timeout=100)
        self.assertNotEqual(said.returncode, 0)
        self.assertRegex(said.stdout + said.stderr, re.compile(fails_with, re.DOTALL))


class WithoutMpi(Installed):
    def test_a_program_without_mpi(self):
        self.builds("main.cpp", self.imbrex("imbrex-c++"), "--no-mpi")
        flags = self.words(self.imbrex(), "config", "--no-mpi", "--cflags", "--libs")
        self.builds("main.cpp", "c++", "-std=c++20", *flags)

    @unittest.skipUnless(shutil.which("gfortran"), "no gfortran")
    def test_fortran_without_mpi(self):
        self.environment["XDG_CACHE_HOME"] = str(self.program.parent)
        wrapper = [self.imbrex("imbrex-fort"), "--no-mpi"]
        self.builds("../../mpi/fortran/own_arrays.f90", *wrapper)
        made = set(self.program.parent.glob("imbrex/fortran-*/*"))
        self.assertIn("imbrex.mod", {path.name for path in made})
        times = {path: path.stat().st_mtime_ns for path in made}
        self.builds("../../mpi/fortran/own_arrays.f90", *wrapper)
        self.assertEqual(times, {path: path.stat().st_mtime_ns for path in made})

    @unittest.skipUnless(shutil.which("gfortran"), "no gfortran")
    def test_modules_of_another_compiler_are_made_anew(self):
        modules = self.program.parent / "modules"
        wrapper = [self.imbrex("imbrex-fort"), "--no-mpi", f"--modules={modules}"]
        self.output(*wrapper)
        (modules / "imbrex.mod").write_text("another compiler's")
        (modules / "imbrex-modules.txt").write_text("another compiler's")
        self.builds("../../mpi/fortran/own_arrays.f90", *wrapper)

    def test_help_shows_the_options_of_imbrex(self):
        for name in ("imbrex-cc", "imbrex-c++"):
            said = self.output(self.imbrex(name), "--no-mpi", "--help")
            self.assertIn(f"options of {name}:", said)
            self.assertIn("--show", said)
            self.assertNotIn("--modules", said)

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
    def test_pkg_config_knows_the_core(self):
        self.builds("main.cpp", "c++", "-std=c++20",
                    *self.words("pkg-config", "--cflags", "--libs", "imbrex"))

    def test_headers_of_another_version_are_refused_at_the_start(self):
        headers = self.program.parent / "include"
        shutil.copytree(self.prefix / "include", headers)
        header = headers / "imbrex/version.h"
        text = header.read_text()
        major, minor, patch = map(int, re.findall(r"VERSION_[A-Z]+ ([0-9]+)", text))
        library = rf"{major}\.{minor}\.{patch} \({self.prefix}/lib/libimbrex\.so\.{major}\.{minor}"
        wrapper = [self.imbrex("imbrex-c++"), "--no-mpi"]
        for name, number in (("MINOR", minor + 1), ("PATCH", patch + 1)):
            header.write_text(re.sub(rf"(VERSION_{name}) [0-9]+", rf"\1 {number}", text))
            other = rf"program was compiled with.* {major}\.[0-9.]+ \({header}\).*{library}"
            self.builds("main.cpp", *self.first_include(wrapper, headers), fails_with=other)
            wrapper_for_c = [self.imbrex("imbrex-cc"), "--no-mpi"]
            self.builds("../../../examples/c_add.c", *self.first_include(wrapper_for_c, headers),
                        fails_with=other)

    def first_include(self, wrapper, folder):
        """The command that the wrapper runs, with this folder of headers before its own."""
        command = self.words(*wrapper, "--show")
        return [command[0], f"-I{folder}", *command[1:]]

    def test_libraries_are_named_by_the_numbers_that_must_be_equal(self):
        version = self.output(self.imbrex(), "--version").split()[1]
        wanted = ".".join(version.split(".")[:2])
        for library in self.prefix.glob("lib*/**/libimbrex*.so"):
            if library.name == "libimbrex_preload.so":  # preloaded by its path: nothing links it
                continue
            said = self.output("objdump", "-p", library)
            self.assertRegex(said, rf"SONAME +\S+\.so\.{re.escape(wanted)}\n", library)

    def has_variant(self):
        return any(self.prefix.glob("lib*/**/tsan/libimbrex.so"))

    def test_the_variant_for_thread_sanitizer(self):
        if not self.has_variant():
            self.skipTest("it was not built")
        self.environment["TSAN_OPTIONS"] = (
            f"suppressions={self.prefix / 'share/imbrex/tsan/imbrex.supp'}")
        self.builds("main.cpp", self.imbrex("imbrex-c++"), "--no-mpi", "--tsan")
        flags = self.words(self.imbrex(), "config", "--no-mpi", "--tsan", "--cflags", "--libs")
        self.builds("main.cpp", "c++", "-std=c++20", *flags)
        self.builds("../../tsan/missing.cpp", self.imbrex("imbrex-c++"), "--no-mpi", "--tsan",
                    fails_with="missing.cpp:21.*missing.cpp:19", arguments=["access"])

    def test_a_variant_that_was_not_built_is_refused(self):
        if self.has_variant():
            self.skipTest("it was built")
        said = subprocess.run([self.imbrex(), "config", "--tsan", "--libs"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, "^imbrex config: .*ThreadSanitizer\n$")


class WithMpi(Installed):
    """mpi.cpp: a receive and a send in two tasks on one worker."""
    def setUp(self):
        super().setUp()
        mpicxx = pathlib.Path(self.mpicc.replace("mpicc", "mpicxx"))
        self.mpicxx = [mpicxx, "-std=c++20"]
        self.has_mpicxx = mpicxx.exists() and str(mpicxx) != self.mpicc

    def test_the_wrapper(self):
        self.builds("mpi.cpp", self.imbrex("imbrex-c++"), f"--mpi={self.interface}")
        if self.has_mpicxx:
            self.builds("mpi.cpp", self.imbrex("imbrex-c++"), f"--mpi={self.interface}", "-lmpi")

    def test_the_variant_for_thread_sanitizer(self):
        if not any(self.prefix.glob(f"lib*/**/tsan/libimbrex_mpi_{self.interface}.so")):
            self.skipTest("it was not built")
        self.environment["TSAN_OPTIONS"] = (
            f"suppressions={self.prefix / 'share/imbrex/tsan/imbrex.supp'}")
        self.builds("mpi.cpp", self.imbrex("imbrex-c++"), f"--mpi={self.interface}", "--tsan")

    def test_the_wrapper_compiles_and_links_in_two_steps(self):
        part = self.program.with_suffix(".o")
        wrapper = [self.imbrex("imbrex-c++"), f"--mpi={self.interface}"]
        self.output(*wrapper, "-c", self.sources / "mpi.cpp", "-o", part)
        self.output(*wrapper, AS_NEEDED, part, "-o", self.program)
        self.assertEqual(self.output(self.program), "")

    def test_the_wrapper_for_c_shows_what_it_runs(self):
        wrapper = [self.imbrex("imbrex-cc"), f"--mpi={self.interface}", "--show"]
        words = self.words(*wrapper, "a.c")
        self.assertEqual(words[0], self.mpicc)
        self.assertIn(f"-limbrex_mpi_{self.interface}", words)
        words = self.words(*wrapper, "-c", "a.c")
        self.assertNotIn(f"-limbrex_mpi_{self.interface}", words)

    def test_config(self):
        flags = self.words(self.imbrex(), "config", "--mpi", self.interface, "--cflags", "--libs")
        self.builds("mpi.cpp", "c++", "-std=c++20", *flags)
        if self.has_mpicxx:
            self.builds("mpi.cpp", *self.mpicxx, *flags)

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
    def test_pkg_config(self):
        flags = self.words("pkg-config", "--cflags", "--libs", f"imbrex-mpi-{self.interface}")
        self.builds("mpi.cpp", "c++", "-std=c++20", *flags)
        if self.has_mpicxx:
            self.builds("mpi.cpp", *self.mpicxx, *flags)

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
    def test_pkg_config_knows_hcmpi(self):
        flags = self.words("pkg-config", "--cflags", "--libs", f"imbrex-hcmpi-{self.interface}")
        self.builds("hcmpi.c", "cc", *flags)
        self.builds("hcmpi.c", self.mpicc, *flags)

    def test_the_wrapper_for_c_builds_a_program_of_hcmpi(self):
        self.builds("hcmpi.c", self.imbrex("imbrex-cc"), f"--mpi={self.interface}",
                    f"-limbrex_hcmpi_{self.interface}", "-Wl,--no-as-needed",
                    f"-limbrex_hcmpi_{self.interface}")

    def test_an_mpi_that_is_not_there_is_refused_with_those_that_are(self):
        said = subprocess.run([self.imbrex("imbrex-c++"), "--mpi=none", "a.cpp"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, f"^imbrex-c\\+\\+: --mpi none: .*{self.interface}")


if __name__ == "__main__":
    Installed.prefix, Installed.sources = (pathlib.Path(word).absolute() for word in sys.argv[1:3])
    Installed.interface, Installed.mpicc = (sys.argv[4:] + ["", ""])[:2]
    if sys.argv[3] != "1":
        del WithMpi
    unittest.main(argv=sys.argv[:1])
