# SPDX-License-Identifier: BSD-3-Clause
"""spack_test.py SOURCE MPICC: CMake configures imbrex with the arguments of the Spack recipe.

Methodology: stand-ins for Spack's modules record what the recipe declares. Spack itself is on
neither Debian nor PyPI, so its concretizer does not run here.
"""
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

DIRECTIVES = ("conflicts", "depends_on", "generator", "license", "variant", "version")


class CMakePackage:
    """A package of which all variants have their defaults."""

    def __init__(self, mpicc):
        command = types.SimpleNamespace(path=sys.executable)
        packages = {"python": types.SimpleNamespace(command=command),
                    "mpi": types.SimpleNamespace(mpicc=mpicc)}
        self.spec = type("Spec", (), {
            "satisfies": lambda _, constraint: constraint == "+mpi",
            "__getitem__": lambda _, name: packages[name]})()

    def define(self, name, value):
        text = {True: "ON", False: "OFF"}.get(value, value)
        return f"-D{name}:{'BOOL' if isinstance(value, bool) else 'STRING'}={text}"

    def define_from_variant(self, name, variant):
        return self.define(name, recorded("variant", variant)["default"])


DECLARED = []  # (directive, its first argument, its keyword arguments)


def recorded(directive, name):
    found = [options for kind, first, options in DECLARED if (kind, first) == (directive, name)]
    if len(found) != 1:
        raise KeyError(f"{len(found)} times {directive}(\"{name}\")")
    return found[0]


def load(path):
    package = types.ModuleType("spack.package")
    for name in DIRECTIVES:
        setattr(package, name, lambda first, *_, directive=name, **options:
                DECLARED.append((directive, first, options)))
    package.run_after = package.on_package_attributes = lambda *_, **__: lambda function: function
    base = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    base.CMakePackage = CMakePackage
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules.update({package.__name__: package, base.__name__: base})
    spec = importlib.util.spec_from_file_location("imbrex_recipe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Recipe(unittest.TestCase):
    source = mpicc = recipe = None

    def test_git_is_the_tree_of_the_recipe(self):
        self.assertEqual(self.recipe.Imbrex.git, self.source.as_uri())

    def test_each_library_that_cmake_looks_for_is_a_dependency(self):
        text = (self.source / "cmake/ImbrexDependencies.cmake").read_text(encoding="utf-8")
        core = text.partition("if(IMBREX_BUILD_TESTS)")[0]
        wanted = set(re.findall(r"imbrex_require\(\w+ lib(\w+?)1?-", core))
        self.assertEqual(wanted, {"boost", "hwloc", "expat", "fmt"})
        named = {re.match(r"[\w-]+", first)[0] for kind, first, _ in DECLARED
                 if kind == "depends_on"}
        self.assertLessEqual(wanted, named)

    def test_cmake_takes_each_argument(self):
        with tempfile.TemporaryDirectory() as build:
            arguments = self.recipe.Imbrex(self.mpicc).cmake_args()
            done = subprocess.run(["cmake", "-S", self.source, "-B", build, "-G", "Ninja",
                                   "-DCMAKE_BUILD_TYPE=Release", *arguments],
                                  capture_output=True, text=True, check=False, timeout=250)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        self.assertNotIn("not used by the project", said)


if __name__ == "__main__":
    Recipe.source = pathlib.Path(sys.argv[1]).resolve()
    Recipe.mpicc = sys.argv[2]
    Recipe.recipe = load(
        Recipe.source / "packaging/spack/spack_repo/imbrex/packages/imbrex/package.py")
    unittest.main(argv=sys.argv[:1])
