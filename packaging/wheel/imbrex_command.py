# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the wheel: pip writes a script for each, which calls main().

This module is no part of the package `imbrex`, since `import imbrex` loads an MPI.
"""
import importlib.machinery
import importlib.util
import os
import runpy
import sys


def main():
    """Runs the command whose name the script has, in share/imbrex of the package."""
    sys.dont_write_bytecode = True
    name = os.path.basename(sys.argv[0])
    package = importlib.util.find_spec("imbrex").submodule_search_locations[0]
    folder = os.path.join(package, "share", "imbrex")
    if name == "netlab":
        runpy.run_path(os.path.join(folder, name), run_name="__main__")
        return 0
    # `imbrex` serves all other names, and looks which one was called.
    loader = importlib.machinery.SourceFileLoader("imbrex_tool", os.path.join(folder, "imbrex"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(tool)
    return tool.main(sys.argv[1:])
