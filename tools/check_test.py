#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Methodology: a small clean tree passes; then one breach of each kind is planted, and exactly that
one must be found, in its line."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parent / "check.py"
SPDX = "// SPDX-License-Identifier: BSD-3-Clause\n"
HASH_SPDX = "# SPDX-License-Identifier: BSD-3-Clause\n"
CLEAN = {
    "src/imbrex.layers": HASH_SPDX + "waist:\npublic: waist\nbase: public\ntask: base public\n"
                         "sched: task base public\nmpi: base public waist\nexamples: public\n",
    "src/CMakeLists.txt": HASH_SPDX + "add_library(x base/a.cpp task/t.cpp sched/s.cpp)\n"
                          "foreach(part m)\n  target_sources(x mpi/${part}.cpp)\nendforeach()\n",
    "src/base/a.cpp": SPDX + '#include "base/a.hpp"\n',
    "src/base/a.hpp": SPDX + "#pragma once\n",
    "src/task/t.cpp": SPDX + '#include "base/a.hpp"\n#include "imbrex/task.hpp"\n',
    "src/sched/s.cpp": SPDX + "// thread_local in a comment\nconst char* s = \"thread_local\";\n",
    "src/mpi/m.cpp": SPDX + '#include "imbrex/detail/waist.hpp"\n#include <vector>\n',
    "include/imbrex/task.hpp": SPDX + '#include "imbrex/detail/waist.hpp"\n',
    "include/imbrex/detail/waist.hpp": SPDX,
    "include/CMakeLists.txt": HASH_SPDX + "target_sources(x FILES imbrex/task.hpp imbrex/t.hpp\n"
                              "  imbrex/detail/groups.hpp imbrex/detail/waist.hpp)\n",
    "examples/CMakeLists.txt": HASH_SPDX + "file(GLOB all *.cpp)\n",
    "examples/hello.cpp": SPDX + "int main() {\n  return 0;  // fine\n}\n",
    "README.md": "# x\n\n```cpp\nint main() {\n// ...\n}\n```\n\n```sh\nanything goes\n```\n"
                 "[page](docs/page.md)",
    "docs/page.md": "# Receive from any source\n",
    "tools/run": "#!/usr/bin/env bash\n" + HASH_SPDX,
    "build/junk.cpp": "no licence, and /" + "root/here\n",
}


def function(lines, head="void f()"):
    return SPDX + head + " {\n" + "  g();\n" * (lines - 2) + "}\n"


class Check(unittest.TestCase):
    def run_on(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **changes}.items():
                if text is None:  # the file is not there
                    continue
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            result = subprocess.run([sys.executable, str(CHECK), "--root", folder],
                                    capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        found = result.stdout.splitlines()[:-1]
        self.assertEqual(result.returncode, 1 if found else 0)
        return found

    def finds(self, where, what, changes):
        found = self.run_on(changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(where + ": "), found)
        self.assertIn(what, found[0])

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.run_on({}), [])

    def test_an_upward_include(self):
        self.finds("src/task/t.cpp:2", "task includes sched/s.hpp: task may see base public task",
                   {"src/task/t.cpp": SPDX + '#include "sched/s.hpp"\n'})

    def test_mpi_may_not_see_the_scheduler(self):
        self.finds("src/mpi/m.cpp:3", "mpi includes sched/s.hpp",
                   {"src/mpi/m.cpp": SPDX + '\n#include "sched/s.hpp"\n'})

    def test_users_may_not_see_the_waist(self):
        self.finds("examples/hello.cpp:2", "examples includes imbrex/detail/waist.hpp",
                   {"examples/hello.cpp": SPDX + "#include <imbrex/detail/waist.hpp>\n"
                                                 "int main() {\n}\n"})

    def test_a_public_header_may_not_see_what_is_for_plug_ins(self):
        self.finds("include/imbrex/task.hpp:2", "imbrex/detail/groups.hpp, which is for plug-ins",
                   {"include/imbrex/detail/groups.hpp": SPDX,
                    "include/imbrex/task.hpp": SPDX + '#include "imbrex/detail/groups.hpp"\n'})

    def test_a_folder_that_is_in_no_layer(self):
        self.finds("src/utils/u.cpp:1", "folder utils is not in src/imbrex.layers",
                   {"src/utils/u.cpp": SPDX, "src/utils/CMakeLists.txt": HASH_SPDX + "u.cpp\n"})

    # A folder whose own folders are layers too, and what is written above them.
    DIVIDED = {
        "src/imbrex.layers": CLEAN["src/imbrex.layers"].replace(
            "mpi: base public waist\n", "mpi/low: base\nmpi/high: mpi/low+ public\n"
                                        "mpi: mpi/high+ waist\n"
                                        "distributed: mpi/low base\n"),
        "src/CMakeLists.txt": CLEAN["src/CMakeLists.txt"] + "x(mpi/low/l.cpp mpi/high/h.cpp)"
                              "\nx(d.cpp distributed/d.cpp mpi/new/d.cpp)\n",
        "src/mpi/low/l.hpp": SPDX,
        "src/mpi/low/l.cpp": SPDX + '#include "mpi/low/l.hpp"\n',
        "src/mpi/high/h.hpp": SPDX,
        "src/mpi/high/h.cpp": SPDX + '#include "mpi/high/h.hpp"\n#include "mpi/low/l.hpp"\n',
        "src/mpi/m.cpp": SPDX + '#include "mpi/high/h.hpp"\n#include <mpi.h>\n',
    }

    def test_a_folder_inside_a_folder_is_a_layer_of_its_own(self):
        self.assertEqual(self.run_on(self.DIVIDED), [])
        self.finds("src/mpi/low/l.cpp:3", "mpi/low includes mpi/high/h.hpp",
                   {**self.DIVIDED, "src/mpi/low/l.cpp": SPDX + '#include "mpi/low/l.hpp"\n'
                                                               '#include "mpi/high/h.hpp"\n'})
        self.finds("src/distributed/d.cpp:2", "distributed includes mpi/high/h.hpp",
                   {**self.DIVIDED, "src/distributed/d.cpp": SPDX + '#include "mpi/high/h.hpp"\n'})

    def test_a_test_may_see_all_of_its_own_part(self):
        test = SPDX + '#include "mpi/high/h.hpp"\n'
        build = self.DIVIDED["src/CMakeLists.txt"] + "x(mpi/low/l_test.cpp task/t_test.cpp)\n"
        tree = {**self.DIVIDED, "src/CMakeLists.txt": build, "src/mpi/low/l_test.cpp": test}
        self.assertEqual(self.run_on(tree), [])
        self.finds("src/task/t_test.cpp:2", "task includes mpi/high/h.hpp",
                   {**tree, "src/task/t_test.cpp": test})

    def test_a_ring_of_files(self):
        """A .cpp counts with its header; a test is in no ring."""
        def ring(names):
            files = {}
            for name, following in zip(names, names[1:] + names[:1]):
                files[f"src/base/{name}.hpp"] = SPDX
                files[f"src/base/{name}.cpp"] = (SPDX + f'#include "base/{name}.hpp"\n'
                                                 f'#include "base/{following}.hpp"\n')
            return files

        build = {"src/CMakeLists.txt": CLEAN["src/CMakeLists.txt"] +
                 "x(base/b.cpp base/c.cpp base/d.cpp base/e.cpp base/f.cpp base/a_test.cpp)\n",
                 "src/base/a_test.cpp": SPDX + '#include "base/e.hpp"\n'}
        self.assertEqual(self.run_on({**build, **ring("abcd"), **ring("ef")}), [])
        self.finds("src/base/a.cpp:1", "5 files need each other in a ring, 4 are the limit: "
                   "src/base/a src/base/b src/base/c src/base/d src/base/e",
                   {**build, **ring("abcde"), "src/base/f.cpp": SPDX + '#include "base/a.hpp"\n'})

    def test_two_headers_of_one_name(self):
        self.finds("src/base/task.hpp:1", "include/imbrex/task.hpp has the same name",
                   {"src/base/task.hpp": SPDX, "src/base/a.cpp": SPDX + '#include "base/a.hpp"\n'
                                                                      '#include "base/task.hpp"\n'})

    def test_a_namespace_is_its_folder(self):
        def spaces(*names):
            return SPDX + "".join(f"namespace {name} {{\nvoid f() {{\n}}\nnamespace {{\n}}\n}}\n"
                                  for name in names)

        public = SPDX + "namespace imbrex {\n/// One.\nvoid f();\n}\n"
        tree = {name.replace("mpi", "omp"): text.replace("mpi", "omp")
                for name, text in self.DIVIDED.items()}
        tree.update({"include/imbrex/task.hpp": public, "src/mpi/m.cpp": None})
        low = "src/omp/low/l.cpp"
        self.assertEqual(self.run_on({
            **tree, low: spaces("imbrex::omp", "imbrex::omp::low", "imbrex::omp::l", "imbrex",
                                "imbrex::detail", "std"),
            "src/omp/m.cpp": SPDX + "namespace imbrex {\nnamespace omp {\nint g;\n}\n}\n"}), [])
        for wrong in ("imbrex::base", "imbrex::omp::high", "imbrex::omp::h", "other"):
            self.finds(low + ":2", f"namespace {wrong} in src/omp/low: a namespace is its folder",
                       {**tree, low: spaces(wrong)})
        inner = SPDX + "namespace imbrex::omp {\nnamespace inner {\n}\n}\n"
        self.assertEqual(self.run_on({**tree, low: inner}), [])
        types = SPDX + "namespace imbrex::task {\nclass Task;\nstruct Access;\n}\n"
        self.assertEqual(self.run_on({**tree, low: types}), [])
        nested = SPDX + "namespace imbrex {\nnamespace omp::high {\n}\n}\n"
        self.finds(low + ":3", "namespace imbrex::omp::high in src/omp/low", {**tree, low: nested})

    def test_the_public_namespace_is_for_what_include_declares(self):
        own = SPDX + "namespace imbrex::detail {\nvoid own() {\n}\n}\n"
        self.finds("src/base/a.cpp:2", "include/ declares nothing of what this defines",
                   {"src/base/a.cpp": own})
        self.assertEqual(self.run_on({"src/base/a.cpp": own,
                                      "include/imbrex/task.hpp": SPDX + "/// One.\nvoid own();\n"}),
                         [])

    def test_no_folder_of_the_scheduler_or_of_openmp_sees_one_above_it(self):
        """Looks in the layers of this very tree."""
        layers = pathlib.Path(CHECK.parent.parent, "src/imbrex.layers").read_text(encoding="utf-8")
        chains = [["task", "task/access", "task/ending", "sched/policy", "sched/run",
                   "sched/run/phasers", "sched/run/loop", "sched/trigger", "sched/life",
                   "sched/waist", "sched/waist/phasers"],
                  ["omp/environment", "omp/region", "omp/tasks", "omp/sharing"],
                  ["omp/region", "omp/calls"], ["omp/tasks", "omp/host"]]
        for lower, upper in [pair for chain in chains for pair in zip(chain, chain[1:])]:
            build = f"x({lower}/l.cpp {upper}/u.cpp)\n"
            tree = {"src/imbrex.layers": layers, "src/sched/s.cpp": None, "src/mpi/m.cpp": None,
                    f"src/{lower}/l.hpp": SPDX,
                    f"src/{upper}/u.hpp": SPDX,
                    f"src/{lower}/l.cpp": SPDX + f'#include "{lower}/l.hpp"\n',
                    f"src/{upper}/u.cpp": SPDX + f'#include "{upper}/u.hpp"\n'
                                                 f'#include "{lower}/l.hpp"\n',
                    "src/CMakeLists.txt": CLEAN["src/CMakeLists.txt"].replace(
                        " sched/s.cpp", "").replace("foreach", build + "foreach")}
            with self.subTest(lower=lower, upper=upper):
                self.assertEqual(self.run_on(tree), [])
                self.finds(f"src/{lower}/l.cpp:3", f"{lower} includes {upper}/u.hpp",
                           {**tree,
                            f"src/{lower}/l.cpp": SPDX + f'#include "{lower}/l.hpp"\n'
                                                         f'#include "{upper}/u.hpp"\n'})

    def test_a_folder_inside_a_divided_one_that_is_in_no_layer(self):
        self.finds("src/mpi/new/d.cpp:1", "folder mpi/new is not in src/imbrex.layers",
                   {**self.DIVIDED, "src/mpi/new/d.cpp": SPDX})

    def test_an_include_that_does_not_say_its_layer(self):
        self.finds("src/mpi/high/h.cpp:3", 'say "mpi/low/l.hpp"',
                   {**self.DIVIDED, "src/mpi/high/h.cpp": SPDX + '#include "mpi/high/h.hpp"\n'
                                                                '#include "l.hpp"\n'})

    def test_layers_that_form_a_cycle(self):
        self.finds("src/imbrex.layers:4", "base may include task, which is not above",
                   {"src/imbrex.layers": CLEAN["src/imbrex.layers"].replace(
                       "base: public", "base: public task", 1)})

    def test_a_missing_licence_line(self):
        self.finds("src/base/a.hpp:1", "SPDX", {"src/base/a.hpp": "#pragma once\n"})

    def test_a_script_without_suffix_needs_a_licence_line_too(self):
        self.finds("tools/run:2", "SPDX", {"tools/run": "#!/usr/bin/env bash\necho\n"})

    def test_long_lines(self):
        self.finds("src/base/a.hpp:2", "101 columns", {"src/base/a.hpp": SPDX + "/" * 101 + "\n"})
        self.assertEqual(self.run_on({"src/base/a.hpp": SPDX + "/" * 100 + "\n"}), [])

    def test_long_files(self):
        self.finds("src/base/a.hpp:801", "801 lines", {"src/base/a.hpp": SPDX + "//\n" * 800})
        self.assertEqual(self.run_on({"src/base/a.hpp": SPDX + "//\n" * 799}), [])

    def test_long_functions_of_all_shapes(self):
        for head in ("void f()", "template <class T>\nauto f(T t) noexcept -> T",
                     "TEST(A, b)", "A::A(int b) : c_{b}, d_(b)", "A::A(int b) : c_(b), d_{b}",
                     "namespace n {\nstruct S : T {\n  void f() const", "static int f(struct X x)"):
            lines = 71 - head.split("{\n")[-1].count("\n")
            text = function(lines, head)
            found = self.run_on({"src/base/a.hpp": text})
            self.assertEqual(len(found), 1, (head, found))
            self.assertIn("a function of 71 lines", found[0])
            text = function(lines - 1, head)
            self.assertEqual(self.run_on({"src/base/a.hpp": text}), [], head)

    def test_only_functions_have_a_length_limit(self):
        for head in ("namespace imbrex::base", "struct S : T",
                     "class alignas(64) [[nodiscard]] C final",
                     "enum class E : int", "const int table[] =", 'extern "C"',
                     "template <class T>\nstruct S<T(int)> : T"):
            text = SPDX + head + " {\n" + "// row\n" * 90 + "}\n"
            self.assertEqual(self.run_on({"src/base/a.hpp": text}), [], head)

    def test_braces_in_literals_do_not_count(self):
        text = SPDX + "void f() {\n  g('{', \"{{\", R\"x({)x\");  // {\n}\n" + "// row\n" * 90
        self.assertEqual(self.run_on({"src/base/a.hpp": text + "void h() {\n}\n"}), [])

    def test_long_functions_in_python(self):
        text = HASH_SPDX + "def f():\n" + "    pass\n" * 70
        self.finds("tools/x.py:2", "a function of 71 lines", {"tools/x.py": text})

    def test_an_identity_of_a_thread(self):
        self.finds("src/task/t.cpp:2", "pthread_self: ask src/base/arch.hpp",
                   {"src/task/t.cpp": SPDX + "auto me() { return pthread_self(); }\n"})
        self.finds("include/imbrex/t.hpp:2", "this_thread::get_id: ask",
                   {"include/imbrex/t.hpp": SPDX + "auto me = std::this_thread::get_id();\n"})
        self.assertEqual(self.run_on({
            "src/base/arch.hpp": SPDX + "inline auto me() { return gettid(); }\n",
            "src/sched/s.cpp": SPDX + "#include \"base/arch.hpp\"\n"}), [])

    def test_a_stray_thread_local(self):
        self.finds("src/task/t.cpp:2", "thread_local: allowed only in src/sched/run/current.cpp",
                   {"src/task/t.cpp": SPDX + "thread_local int x;\n"})
        layers = CLEAN["src/imbrex.layers"].replace("sched:", "sched/run: base\nsched:")
        self.assertEqual(self.run_on({
            "src/imbrex.layers": layers,
            "src/sched/run/current.cpp": SPDX + "thread_local int x;\n",
            "src/CMakeLists.txt": CLEAN["src/CMakeLists.txt"] +
            "# \nx(sched/run/current.cpp)\n"}), [])

    def test_a_result_that_is_ignored(self):
        self.finds("src/task/t.cpp:2", "ftruncate: its result must be used",
                   {"src/task/t.cpp": SPDX + "void f() { (void)ftruncate(1, 0); }\n"})
        self.finds("src/task/t.cpp:2", "write: its result must be used",
                   {"src/task/t.cpp": SPDX + "void f() { (void)::write(1, \"\", 0); }\n"})
        self.assertEqual(self.run_on({
            "src/task/t.cpp": SPDX + "void f() { (void)close(1); (void)overwrite(1); }\n"}), [])

    def test_a_leftover_without_a_reason(self):
        word = "TO" "DO"
        self.finds("src/base/a.hpp:2", "without a reason",
                   {"src/base/a.hpp": SPDX + f"// {word} later\n"})
        self.finds("src/base/a.hpp:2", "without a reason",
                   {"src/base/a.hpp": SPDX + "// FIX" "ME(me): because\n"})
        self.assertEqual(self.run_on({"src/base/a.hpp": SPDX + f"// {word}(me): because\n"}), [])

    def test_a_dead_source_file(self):
        self.finds("src/base/unused.cpp:1", "dead", {"src/base/unused.cpp": SPDX})

    def test_a_dead_header(self):
        self.finds("src/base/unused.hpp:1", "dead", {"src/base/unused.hpp": SPDX})

    def test_a_header_that_is_not_installed(self):
        self.finds("include/imbrex/new.hpp:1", "not installed", {"include/imbrex/new.hpp": SPDX})

    def test_too_many_names_in_a_folder(self):
        names = [f"imbrex/n{i}.hpp" for i in range(24)]
        found = self.run_on({**{f"include/{name}": SPDX for name in names},
                             "include/CMakeLists.txt": CLEAN["include/CMakeLists.txt"]
                             + "\n".join(["x(", *names, ")\n"])})
        self.assertEqual(len(found), 1, found)
        self.assertIn("include/imbrex:1: 25 names: 24 are", found[0])

    def test_a_preset_that_is_not_there(self):
        there = {"CMakePresets.json": '{"configurePresets": [{"name": "dev"}, {"name": "asan"}]}'}
        page = CLEAN["README.md"] + "\nThe presets `dev` and\n`asan`; `cmake --preset dev`.\n"
        self.assertEqual(self.run_on({**there, "README.md": page}), [])
        for line, what in (("`ctest --preset dev`", "no test preset dev"),
                           ("`cmake --workflow --preset=asan`", "no workflow preset asan"),
                           ("The presets `dev` and `odd`.", "no configure preset odd")):
            self.finds("README.md:12", what, {**there, "README.md": CLEAN["README.md"] + line})

    def test_a_path_of_one_machine(self):
        self.finds("docs/page.md:1", "a path of one machine: /home" "/me/",
                   {"docs/page.md": "see /home" "/me/x\n"})

    def test_a_link_to_nowhere(self):
        self.finds("docs/page.md:2", "a link to x.md, which is not there",
                   {"docs/page.md": "[a](../src/imbrex.layers#b), [c](https://example.org),\n"
                                 "[d](x.md)\n"})

    def test_links_and_tables_of_a_template_are_those_of_its_page(self):
        self.assertEqual(self.run_on({"bench/papers/templates/page.md":
                                      SPDX.replace("//", "<!--").rstrip() + " -->\n"
                                      "|1|2|3|4|5|6|\n[d](x.md)\n"}), [])

    def test_a_link_to_a_heading_that_is_not_there(self):
        page = "# `MPI_Recv`, and [so](page.md) on\n[a](#mpi_recv-and-so-on)\n[b](page.md#mpi)\n"
        self.finds("docs/page.md:3", "no heading of docs/page.md is #mpi", {"docs/page.md": page})

    def test_a_page_that_no_link_leads_to(self):
        self.finds("docs/lost.md:1", "no page links to this one", {"docs/lost.md": "# Lost\n"})
        self.assertEqual(self.run_on({"docs/lost.md": "# Lost\n",
                                      "docs/page.md": "[lost](../docs/lost.md#lost)\n"}), [])

    def test_a_table_that_does_not_fit(self):
        self.finds("docs/page.md:2", "a table of 6 columns", {"docs/page.md": "\n|1|2|3|4|5|6|\n"})
        self.finds("docs/page.md:1", "a cell with more than 3 links",
                   {"docs/page.md": "| x |" + "[a](page.md)" * 4 + "|\n"})
        self.assertEqual(self.run_on({"docs/page.md": "|1|2|`a|b|c`|4|a\\|b|\n"}), [])

    def test_a_question_whose_answer_is_not_where_it_is_said_to_be(self):
        def found(path, words, page="# Receive from any source\n"):
            row = f'| How do I receive from any source? | {path} | "{words}" |\n'
            return self.run_on({"docs/page.md": "[questions](design/documentation.md)\n" + page,
                                "docs/design/documentation.md": row})
        start, path = "[README](../../README.md)", "[README](../../README.md), [page](../page.md)"
        self.assertEqual(found(path, "Receive from any source"), [])
        self.assertEqual(found(path + ", [this](documentation.md)", "How do I receive"), [])
        for problem, breach in (
                (found(path, "Wait"), 'the first 40 lines of docs/page.md do not have "Wait"'),
                (found(path, "Receive", "\n" * 39 + "# Receive\n"), "do not have"),
                (found(start + ", [this](documentation.md)", "How do I receive"),
                 "README.md has no link to docs/design/documentation.md"),
                (found("[page](../page.md)", "Receive"), "begins at README.md"),
                (found(path + ", [a](documentation.md), [b](../page.md)", "Receive"),
                 "2 links at most")):
            self.assertIn(breach, " ".join(problem))

    def test_code_in_the_documentation_that_nobody_compiles(self):
        self.finds("docs/page.md:2", "cut from no file", {"docs/page.md": "```cpp\nint x;\n```\n"})

    def test_a_name_that_no_code_has(self):
        code = {"examples/named.cpp": SPDX + "// goes()\nnamespace here { void is(); }\n"}
        for name in ("here::goes", "goes()"):
            page = f"`here::is` and `is()`, `std::any`, `theirs::x`\n`{name}`\n"
            self.finds("docs/page.md:2", "no code has the name " + name.removesuffix("()"),
                       {**code, "docs/page.md": page})

    def test_a_function_in_a_comment_that_only_a_fake_has(self):
        fake = {"src/testing/fake.cpp": SPDX + "void starts() {}\n",
                "src/CMakeLists.txt": HASH_SPDX
                + "add_library(x base/a.cpp task/t.cpp sched/s.cpp testing/fake.cpp)\n"}
        for comment in ("// As starts() does.", "int a;  /* see base::starts() */"):
            text = SPDX + '#include "base/a.hpp"\n' + comment + "\n"
            self.assertIn("src/base/a.cpp:3: the library has no function",
                          "".join(self.run_on({**fake, "src/base/a.cpp": text})))
        text = SPDX + '#include "base/a.hpp"\n// As std::swap() and runs().\nint runs();\n'
        self.assertEqual(self.run_on({"src/base/a.cpp": text}), [])

    def test_a_text_behind_the_licence(self):
        self.finds("src/base/a.cpp:1", "a text behind the licence",
                   {"src/base/a.cpp": SPDX[:-1] + ' A file.\n#include "base/a.hpp"\n'})

    def test_the_parts_of_a_block_must_come_in_order(self):
        self.finds("docs/page.md:2", "cut from no file",
                   {"docs/page.md": "```cpp\n}\n// ...\nint main() {\n```\n"})

    def header(self, text, name="include/imbrex/task.hpp"):
        return {name: SPDX + "namespace imbrex {\n" + text + "}  // namespace imbrex\n"}

    def test_a_sentence_that_does_not_name_its_subject(self):
        for comment in ("// The same for a task.", "// As the next.", "int a;  // Of all tasks.",
                        "// It waits. By a bell.", "// It waits\n// long. Of all the\n// last one.",
                        "/* By rank. */", "// A request of\n// ours.", "/// - By a task.",
                        "/* It waits.\n   (2) Of all. */"):
            self.assertEqual(len(self.run_on({"src/base/a.cpp": SPDX + '#include "base/a.hpp"\n'
                                              + comment + "\n"})), 1, comment)
        self.finds("src/base/a.cpp:4", '"Of": a sentence names its subject', {
            "src/base/a.cpp": SPDX + '#include "base/a.hpp"\n// It waits.\n// Of all.\n'})
        self.finds("docs/page.md:3", '"The same"', {"docs/page.md": "# A\n\nOne. The same.\n"})
        self.finds("docs/page.md:3", '"By"', {"docs/page.md": "# A\n\n- By hand.\n"})
        self.finds("tools/run.py:3", '"By"', {"tools/run.py": HASH_SPDX + "# One.\n# By hand.\n"})

    def test_openings_that_name_a_subject(self):
        for comment in ("// By default it waits.", "// It waits\n// by a bell.",
                        "// It waits;\n// Of it: no sentence begins here", 'auto a = "Of x. By y";',
                        "// The same_name.", "// Offers. Byte by byte."):
            self.assertEqual(self.run_on({"src/base/a.cpp": SPDX + '#include "base/a.hpp"\n'
                                          + comment + "\n"}), [], comment)
        self.assertEqual(self.run_on({"docs/page.md": "# A\n\n```text\nBy hand.\n```\n"}), [])
        self.assertEqual(self.run_on({"docs/style.md": "# A\n\nBy hand.\n",
                                      "docs/page.md": "# A\n\n[s](style.md)\n"}), [])

    def test_a_test_name_without_a_subject(self):
        head = SPDX + '#include "base/a.hpp"\n'
        for macro in ("TEST(A, ", "TEST_F(A,\n    ", "TEST_P(A, "):
            for name in ("what_fails", "who_waits", "those_end", "the_same_again", "of_one"):
                self.finds(f"src/base/a.cpp:{3 + macro.count(chr(10))}", f"{name}: the name",
                           {"src/base/a.cpp": head + macro + name + ") {}\n"})
        self.finds("tools/run_test.py:2", "test_what_fails: the name of",
                   {"tools/run_test.py": HASH_SPDX + "def " "test_what_fails(): pass\n"})
        self.assertEqual(self.run_on({"src/base/a.cpp": head + "TEST(A, offers_of_whatever) {}\n",
                                      "tools/run_test.py": HASH_SPDX + "def test_x_by(): pass\n"}),
                         [])

    def test_a_public_function_says_what_it_does(self):
        where, what = "include/imbrex/task.hpp", "a public function has a /// block"
        self.finds(f"{where}:3", what, self.header("void f();\n"))
        self.finds(f"{where}:4", what, self.header("// Little.\ninline int f() { return 1; }\n"))
        self.finds(f"{where}:6", what, self.header("/// This one does.\nvoid f();\n\nvoid g();\n"))
        self.finds(f"{where}:7", what, self.header(
            "/// A class.\nclass A {\n public:\n  A() = default;\n  template <class T>\n"
            "    requires(sizeof(T) > 1)\n  int f(T (*g)(int)) const;\n private:\n  void h();\n"
            "};\n"))
        self.finds("include/imbrex/x.h:2", "a public function has a comment",
                   {"include/imbrex/x.h": SPDX + "int f(void);\n",
                    "include/CMakeLists.txt": CLEAN["include/CMakeLists.txt"].replace(
                        "imbrex/task.hpp", "imbrex/task.hpp imbrex/x.h")})

    def test_functions_that_follow_each_other_share_what_is_said(self):
        self.assertEqual(self.run_on(self.header(
            "/// Both.\nvoid f();\nint g(int x = 1) {\n\n  return x;\n}\ntemplate <class T>\n"
            "void h(T);\n\nnamespace detail {\nvoid hidden();\n}  // namespace detail\n\n"
            "struct S {\n  S(const S& other) noexcept;\n  ~S();\n  int (*data)(int);\n"
            "  std::function<int(int)> call = {};\n\n  /// Set.\n  S& operator=(int);\n"
            " private:\n  void own();\n};\nstatic_assert(sizeof(S) > 1);\n"
            "using F = int(int);\n")), [])

    def test_a_public_signature_names_nothing_of_detail(self):
        self.finds("include/imbrex/task.hpp:4", "names nothing of detail::",
                   self.header("/// Wrong.\nvoid f(detail::X x);\n"))
        self.assertEqual(self.run_on(self.header(
            "/// Right.\ninline void f() { detail::g(); }\nstruct S {\n  /// Right.\n"
            "  explicit S(int x) : x_(detail::of(x)) {}\n};\n")), [])


if __name__ == "__main__":
    unittest.main()
