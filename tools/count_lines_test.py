# SPDX-License-Identifier: BSD-3-Clause
"""Tests tools/count_lines: what is a line of code in each language, and that a commit is counted as
it was and the working tree as it is."""
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "count_lines"
LOADER = importlib.machinery.SourceFileLoader("count_lines", str(SCRIPT))
SPEC = importlib.util.spec_from_loader("count_lines", LOADER)
count_lines = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(count_lines)


class Lines(unittest.TestCase):
    def counts(self, lines, name, text):
        self.assertEqual(count_lines.code_lines(name, text), lines)

    def test_c_and_cpp(self):
        for name in ("a.c", "a.cpp", "a.h", "a.hpp", "a.def", "a.pml"):
            self.counts(0, name, "// one\n\n/* two\n   three */  \n// four \\\n   five\n")
            self.counts(3, name, "int a; // one\n/* two */ int b;\n  int c; /* three\n four */\n")

    def test_text_in_a_literal_is_no_comment(self):
        self.counts(3, "a.cpp", 'a = "/*";\nb = "\\"//";\nc = \'"\'; /* a */ // b\n/* c */\n')
        self.counts(4, "a.cpp", 'a = R"x(\n// one\n/* two\n)x";  // three\n\n')
        self.counts(2, "a.cpp", "a = 1'000'000;  // one\n// '\nb = 2;\n")

    def test_fortran(self):
        self.counts(2, "a.f90", "! one\n  ! two\n!$omp parallel\ncall f()  ! three\n\n")
        self.counts(2, "a.F", "C one\nc two\n* three\n! four\nC$OMP PARALLEL\n      CALL F\n")
        self.counts(1, "a.F90", "call f()\n")

    def test_python(self):
        text = ('"""one\ntwo"""\nimport a  # three\n\n# four\n\ndef f():\n    """five"""\n'
                '    return """\n# six\n"""\n')
        self.counts(4, "a.py", text)
        self.counts(4, "script", "#!/usr/bin/env python3\n" + text)

    def test_shell_and_cmake(self):
        for name in ("a.sh", "CMakeLists.txt", "a.cmake", "script"):
            self.counts(1, name, "#!/bin/sh\n# one\n\n  # two\na(b)  # three\n")

    def test_other_files_are_no_code(self):
        for name, text in (("a.json", "{}\n"), ("a.md", "a\n"), ("a.txt", "a\n"), ("a", "b\n")):
            self.assertIsNone(count_lines.language_of(name, text))


@unittest.skipUnless(shutil.which("git"), "no git")
class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/a/a.cpp", "int a;\n// one\n")
        self.write("src/b.hpp", "int b;\nint c;\n")
        self.write("tests/run", "#!/bin/sh\necho\n")
        self.write("docs/d.py", "d = 1\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "-m", "all")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *arguments], check=True)

    def table(self, *arguments):
        result = subprocess.run([sys.executable, "-B", SCRIPT, "--root", self.root, *arguments],
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = [line.split() for line in result.stdout.splitlines()]
        head = rows[0]
        return {row[0]: {name: int(number) for name, number in zip(head, row[1:]) if number != "0"}
                for row in rows[1:]}

    def test_a_commit_and_the_tree(self):
        before = {"src": {"C++": 1, "headers": 2, "all": 3}, "include": {}, "apps": {},
                  "bench": {}, "tests": {"shell": 1, "all": 1},
                  "all": {"C++": 1, "headers": 2, "shell": 1, "all": 4}}
        self.assertEqual(self.table(), before)
        self.write("src/new.c", "int d;\n")
        (self.root / "src/b.hpp").unlink()
        self.assertEqual(self.table("src"), {"src": {"C": 1, "C++": 1, "all": 2},
                                             "all": {"C": 1, "C++": 1, "all": 2}})
        self.assertEqual(self.table("--at", "HEAD"), before)

    def test_a_commit_that_is_not_there(self):
        result = subprocess.run([sys.executable, "-B", SCRIPT, "--root", self.root, "--at", "none"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("tools/count_lines: fatal", result.stderr)


if __name__ == "__main__":
    unittest.main()
