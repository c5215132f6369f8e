# SPDX-License-Identifier: BSD-3-Clause
"""Tests tools/mutate: which changes it makes of a small text, which it never makes, which survivors
it knows, and that it leaves the source as it is."""
import argparse
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import mutate_operators
import mutate_tests

TOOLS = pathlib.Path(__file__).resolve().parent
ROOT = TOOLS.parent
LOADER = importlib.machinery.SourceFileLoader("mutate", str(TOOLS / "mutate"))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", LOADER))
LOADER.exec_module(mutate)


def changes(source):
    return {(mutant.operator, mutant.change)
            for mutant in mutate_operators.mutants_of("x.cpp", source)}


class Operators(unittest.TestCase):
    def test_signs_between_spaces_are_changed(self):
        self.assertEqual(changes("x = a == b;") - {("assignment", "`x = a == b;` is `{}`")},
                         {("compare", "`==` is `!=`")})
        self.assertEqual(changes("return a < b;"),
                         {("compare", "`<` is `<=`"), ("compare.2", "`<` is `>=`")})
        self.assertEqual(changes("return a && !b;"),
                         {("logic", "`&&` is `||`"), ("not", "`!` is ``")})
        self.assertEqual(changes("return a + b | c;"),
                         {("arithmetic", "`+` is `-`"), ("bits", "`|` is `&`")})

    def test_signs_of_types_are_not(self):
        self.assertEqual(changes("std::vector<int> f(T&& a, const U& b, V* c);"), set())
        self.assertEqual(changes("template <int n = 1, class T = int>\nvoid f();"), set())
        self.assertEqual(changes("bool operator==(const T& other) const;"), set())

    def test_a_condition_never_or_always_holds(self):
        self.assertEqual(changes("if (ready) [[likely]] return;"), {
            ("never", "`ready` is `(ready) && false`"), ("always", "`ready` is `(ready) || true`")})
        # A loop without an end is found by any test that reaches it.
        self.assertEqual(changes("while (next(ready)) {}"),
                         {("never", "`next(ready)` is `(next(ready)) && false`")})
        self.assertEqual(changes("if (T* x = next()) return;"), set())

    def test_a_statement_is_removed(self):
        self.assertEqual(changes("{ a.b->wake(c, [&] { return d; }); }"),
                         {("call", "`a.b->wake(c, [&] { return d; });` is `{}`")})
        self.assertEqual(changes("{ (void)f(a); }"), {("call", "`(void)f(a);` is `{}`")})
        self.assertEqual(changes("{ *a[i].b = c; }"), {("assignment", "`*a[i].b = c;` is `{}`")})
        for kept in ("{ return f(a); }", "{ Task& task = f(a); }", "{ std::lock_guard lock(a); }",
                     "{ f(a)+g(b); }", "for (; a; f(b)) {}",
                     "{ A(A&&) = delete; }"):
            self.assertFalse([change for change in changes(kept)
                              if change[0] in ("call", "assignment")], kept)

    def test_numbers_and_words_are_changed(self):
        self.assertEqual(changes("return f(1u, true);"), {
            ("number", "`1u` is `2u`"), ("number.2", "`1u` is `0u`"),
            ("boolean", "`true` is `false`")})
        self.assertEqual(changes("return 0x10 << 1.5;"), {("bits", "`<<` is `>>`")})

    def test_comments_texts_and_asserts_stay(self):
        for source in (
                "// a == b", "/* if (a) f(); */", '#include "a < b"', "#if A && !B",
                "static_assert(a == 1);", 'IMBREX_ASSERT(a == 1 && b, "a < b");',
                'throw Error(fmt::format("{} < {}", a + 1, b));', "[[gnu::aligned(64)]] int a;",
                "return std::memory_order_relaxed;", "enum class A { b = 1 };"):
            self.assertEqual(changes(source), set(), source)
        self.assertEqual(changes('{ warn(fmt::format("{} < {}", a + 1, b)); }'),
                         {("call", '`warn(fmt::format("{} < {}", a + 1, b));` is `{}`')})

    def test_lines_stay_where_they_are(self):
        source = "{\n  f(a,\n    b);\n  x = 1;\n}\n"
        for mutant in mutate_operators.mutants_of("x.cpp", source):
            changed = mutant.applied_to(source)
            self.assertEqual(changed.count("\n"), source.count("\n"))
            self.assertNotEqual(changed, source)
        self.assertEqual({mutant.name for mutant in mutate_operators.mutants_of("x.cpp", source)},
                         {"x.cpp:2:call", "x.cpp:4:assignment", "x.cpp:4:number",
                          "x.cpp:4:number.2"})


class Choice(unittest.TestCase):
    """On a small project, of which nothing is built."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/task/a.cpp", "// first\nvoid f() {\n  if (a) g();\n}\n")
        self.write("src/task/a_test.cpp", "void f() {\n  if (a) g();\n}\n")
        self.write("src/base/b.cpp", "void f() {\n  if (a) g();\n}\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_the_code_of_task_and_sched_is_changed_and_no_test(self):
        mutants = mutate.all_mutants(self.root, None)
        self.assertEqual({mutant.file for mutant in mutants}, {"src/task/a.cpp"})
        self.assertEqual(mutate.all_mutants(self.root, ["src/sched"]), [])

    def test_a_seed_gives_the_order_and_a_run_goes_on_where_one_has_ended(self):
        def draw(seed, first):
            arguments = argparse.Namespace(mutant=None, seed=seed, first=first)
            return mutate.drawn(mutate.all_mutants(self.root, None), arguments)
        self.assertEqual(draw(1, 0)[1:], draw(1, 1))
        self.assertEqual(len({tuple(draw(seed, 0)) for seed in range(100)}), 6)
        before = [mutant.operator for mutant in draw(1, 0)]
        self.write("src/task/a.cpp", "// first\n\n\nvoid f() {\n  if (a) g();\n  if (b) g();\n}\n")
        after = [mutant.operator for mutant in draw(1, 0) if mutant.text == "if (a) g();"]
        self.assertEqual(after, before)

    def test_a_survivor_is_known_by_its_line_wherever_that_is(self):
        self.write(mutate.KNOWN, "# Known\n\nsrc/task/a.cpp never\n    if (a) g();\n    It is\n"
                   "    equal.\n\nsrc/task/a.cpp call\n    if (b) g();\n    No more there.\n")
        known, stale = mutate.read_known(self.root)
        self.assertEqual(known["src/task/a.cpp", "never", "if (a) g();"], "It is equal.")
        self.assertEqual(stale, ["src/task/a.cpp call if (b) g();"])
        mutants = {mutant.operator: mutant for mutant in mutate.all_mutants(self.root, None)}
        self.assertIn(mutants["never"].key, known)
        self.assertNotIn(mutants["always"].key, known)

    def test_the_copy_has_what_git_tracks_as_it_is_now(self):
        def git(*words):
            subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True)
        git("init")
        git("add", ".")
        self.write("src/task/a.cpp", "int uncommitted;\n")
        self.write("untracked.cpp", "")
        build = mutate.Build(self.root / "build/source", self.root / "build/tree", 1)
        build.tree.mkdir(parents=True)
        (build.tree / "build.ninja").touch()
        first = build.update(self.root)
        copied = {path.relative_to(build.source).as_posix() for path in build.source.rglob("*.cpp")}
        self.assertEqual(copied, {"src/task/a.cpp", "src/task/a_test.cpp", "src/base/b.cpp"})
        # A mutant that an interrupted run has left is removed.
        (build.source / "src/task/a.cpp").write_text("int mutant;\n")
        self.assertEqual(build.update(self.root), first)
        self.assertEqual((build.source / "src/task/a.cpp").read_text(), "int uncommitted;\n")


class Tree(unittest.TestCase):
    def test_listing_changes_nothing_and_names_mutants_that_can_be_repeated(self):
        def digest():
            sources = sorted((ROOT / "src").rglob("*.[ch]pp"))
            return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).digest()
        before, output = digest(), io.StringIO()
        with contextlib.redirect_stdout(output), unittest.mock.patch.object(
                sys, "argv", ["mutate", "--list", "--seed", "5", "--count", "3"]):
            self.assertEqual(mutate.main(), 0)
        names = [line.split()[0] for line in output.getvalue().splitlines()
                 if line.startswith("src/")]
        self.assertEqual(len(names), 3)
        again = io.StringIO()
        with contextlib.redirect_stdout(again), unittest.mock.patch.object(
                sys, "argv", ["mutate", "--list", "--mutant", *names]):
            mutate.main()
        self.assertEqual([line.split()[0] for line in again.getvalue().splitlines()
                          if line.startswith("src/")], names)
        self.assertEqual(digest(), before)


class Running(unittest.TestCase):
    def run_test(self, script, stopped=lambda: False, seconds=None, **properties):
        test = mutate_tests.Test("x", ["sh", "-c", script], properties, seconds=seconds)
        return mutate_tests.run(test, "/", stopped)

    def test_a_test_fails_as_ctest_says(self):
        self.assertIsNone(self.run_test("exit 0"))
        self.assertEqual(self.run_test("exit 3"), "fails")
        self.assertEqual(self.run_test("kill -SEGV $$"), "fails")
        self.assertIsNone(self.run_test("exit 77", SKIP_RETURN_CODE=77))
        self.assertIsNone(self.run_test("echo odd; exit 1", SKIP_REGULAR_EXPRESSION=["odd"]))
        self.assertIsNone(self.run_test("exit 1", WILL_FAIL=True))
        self.assertIsNone(self.run_test("echo good; exit 1", PASS_REGULAR_EXPRESSION=["go+d"]))
        self.assertEqual(self.run_test("echo bad", FAIL_REGULAR_EXPRESSION=["bad"]), "fails")
        self.assertIsNone(self.run_test('test "$A" = "1=2"', ENVIRONMENT=["A=1=2"]))

    def test_a_test_that_hangs_fails_with_all_that_it_has_started(self):
        with unittest.mock.patch.object(mutate_tests, "LIMIT_S", 0.2):
            began = time.monotonic()
            self.assertEqual(self.run_test("sleep 100 & sleep 100", seconds=0), "hangs")
            self.assertLess(time.monotonic() - began, 50)

    def test_a_test_that_is_cut_off_neither_fails_nor_hangs(self):
        self.assertEqual(self.run_test("sleep 100", stopped=lambda: True), mutate_tests.CUT)

    def test_a_test_that_writes_a_file_runs_before_its_reader(self):
        with tempfile.TemporaryDirectory() as folder:
            first = mutate_tests.Test("first", ["touch", f"{folder}/a"], {})
            second = mutate_tests.Test("second", ["test", "-e", f"{folder}/a"], {}, [first])
            self.assertIsNone(mutate_tests.run(second, "/", lambda: False))

    def suite_of(self, folder, scripts):
        """A suite of shell scripts that take no time without any mutant."""
        entries = [{"name": name, "command": ["sh", "-c", script],
                    "properties": [{"name": "LABELS", "value": ["core", *labels]},
                                   {"name": "WORKING_DIRECTORY", "value": folder}]}
                   for name, script, labels in scripts]
        listing = subprocess.CompletedProcess([], 0, stdout=json.dumps({"tests": entries}))
        with unittest.mock.patch.object(subprocess, "run", return_value=listing):
            suite = mutate_tests.Suite(pathlib.Path(folder), pathlib.Path(folder, "times"), 2)
        for test in suite.tests:
            test.seconds = 0
        return suite

    def test_one_that_fails_again_kills_and_one_of_the_label_full_is_asked_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            suite = self.suite_of(folder, [
                ("passes", "exit 0", []), ("waits", "exit 0", ["waiting"]),
                ("by chance", "test -e a || { touch a; exit 1; }", []),
                ("fails", "exit 1", ["full"])])
            until = time.monotonic() + 100
            self.assertIsNone(suite.run("a mutant", until))
            self.assertEqual(suite.run("a mutant", until, full=True), "fails fails")

    def test_tests_that_are_called_as_the_file_are_first(self):
        self.assertEqual(mutate_tests.words_of("src/sched/waist/phasers/steps.cpp:2:call"),
                         ["waist", "phaser", "step"])
        with tempfile.TemporaryDirectory() as folder:
            suite = self.suite_of(folder, [("other", "touch a", []), ("phaser", "test -e a", [])])
            suite.jobs = 1
            self.assertEqual(suite.run("src/task/phases.cpp:1:call", time.monotonic() + 100),
                             "phaser fails")

    def test_a_passed_test_is_not_run_again_when_the_time_was_too_short(self):
        with tempfile.TemporaryDirectory() as folder:
            suite = self.suite_of(folder, [("once", "mkdir once", []), ("slow", "sleep 2", [])])
            suite.tests[1].seconds = 1  # last
            suite.jobs = 1
            over = mutate_tests.TIME_IS_OVER
            self.assertIs(suite.run("a mutant", time.monotonic() + 1), over)
            self.assertIsNone(suite.run("a mutant", time.monotonic() + 100))


if __name__ == "__main__":
    unittest.main()
